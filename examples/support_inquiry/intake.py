"""Taking an inquiry in."""

import secrets
from collections.abc import Sequence

from django.db import transaction

from examples.support_inquiry.models import Ticket
from examples.support_inquiry.processes import SupportInquiry
from orchestrator import start_process


@transaction.atomic
def take_in(customer: str, text: str = "", attachments: Sequence[str] = ()) -> Ticket:
    """Open a ticket and start its process, both or neither.

    Args:
        customer: the name.
        text: what the customer wrote.
        attachments: names of files in `media`, at most one of each kind.
    """
    number = f"T-{secrets.token_hex(5).upper()}"
    inquiry = SupportInquiry.Input(number, customer, text, list(attachments))
    receipt = start_process(SupportInquiry, inquiry, id=number)
    return Ticket.objects.create(
        ticket=number, process_id=receipt.process_id, customer=customer
    )
