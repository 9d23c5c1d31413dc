import random

from examples.stream import Stream
from examples.support_inquiry.intake import take_in
from examples.support_inquiry.models import Ticket
from examples.support_inquiry.replies import reply_for_customers

CUSTOMERS = (
    "Mia Sato",
    "Jonas Weber",
    "Amélie Laurent",
    "Kenji Mori",
    "Olga Novak",
    "Tomás Vega",
    "Priya Nair",
    "Sam Okafor",
)
INQUIRIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Thank you, everything works very well now!", ()),
    ("What are your opening hours?", ()),
    ("Please send my next order to my new address.", ("address.pdf",)),
    ("", ("thanks.flac",)),
    ("My parcel is late again and I am disappointed.", ()),
    ("", ("late-order.flac",)),
    ("I want a refund. The letter explains it.", ("complaint.pdf",)),
    ("Die Lieferung ist nicht da und ich warte auf mein Geld.", ()),
    ("荷物がまだ届いていません。", ()),
    ("I have scanned the invoice for you.", ("damaged-scan.png",)),
    ("I left you a message.", ("damaged-call.flac",)),
    ("The display says this. What is wrong?", ("machine-display.png",)),
    ("This is a terrible service, cancel everything.", ("complaint.pdf",)),
    ("", ("overdue-invoice.png", "urgent-call.flac")),
    (
        "Everything is broken!",
        ("machine-display.png", "urgent-call.flac", "complaint.pdf"),
    ),
)


class Command(Stream):
    """A steady stream of inquiries; it also replies for customers who were asked something."""

    help = "Enters support inquiries until SIGTERM or Ctrl-C."
    thing = "inquiry"
    pause = 8.0
    most = 5_000

    def tend(self) -> None:
        reply_for_customers()

    def number(self) -> int:
        return Ticket.objects.count()

    def enter(self, dice: random.Random) -> None:
        text, attachments = dice.choice(INQUIRIES)
        take_in(dice.choice(CUSTOMERS), text, attachments)
