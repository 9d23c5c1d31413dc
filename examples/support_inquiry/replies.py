"""Customers' replies, in demonstrations."""

from datetime import timedelta

from django.utils import timezone

from examples.support_inquiry.findings import CustomerReplied
from examples.support_inquiry.models import Ticket
from orchestrator import send_event

THINKING = timedelta(seconds=20)
REPLY = "It is order 4711."


def reply_for_customers(thinking: timedelta = THINKING) -> int:
    """Reply to every question that is older than `thinking`; return how many there were."""
    asked = Ticket.objects.filter(
        status=Ticket.Status.WAITING, updated_at__lt=timezone.now() - thinking
    )
    for ticket in asked[:100]:
        # The same id at every try: a question is answered once.
        send_event(
            CustomerReplied(ticket.ticket, REPLY),
            id=f"reply {ticket.ticket}",
            source="customer",
            process_id=ticket.process_id,
        )
    return len(asked[:100])
