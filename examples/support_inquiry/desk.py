"""The steps that change an inquiry's ticket. They run in the commit that stores their result, so that the ticket and
its process never disagree.
"""

from datetime import timedelta
from uuid import UUID

from django.db.models import Count

from examples.support_inquiry.findings import CustomerReplied, InquiryOutcome, Triage
from examples.support_inquiry.models import Ticket
from orchestrator.definition import StepContext

AGENTS = ("Aiko", "Ben", "Chiara")
PATIENCE = timedelta(days=3)  # for a customer's reply


def reply(ticket: str, customer: str, context: StepContext) -> InquiryOutcome:
    """Answer what needs nobody's attention."""
    thanks = f"Dear {customer}, thank you for your message. Nothing more is needed."
    return settle(ticket, context.process_id, Ticket.Status.ANSWERED, thanks)


def assign(ticket: str, triage: Triage, context: StepContext) -> str:
    """Give the inquiry to the agent who has the least to do."""
    open_tickets = Ticket.objects.filter(status=Ticket.Status.ASSIGNED)
    busy = dict(open_tickets.values_list("agent").annotate(Count("pk")))
    agent = min(AGENTS, key=lambda name: busy.get(name, 0))
    why = ", ".join(triage.reasons)
    settle(ticket, context.process_id, Ticket.Status.ASSIGNED, why, agent)
    return agent


def release(ticket: str) -> None:
    """Take the inquiry from its agent again, when its process has failed or was cancelled."""
    Ticket.objects.filter(pk=ticket).update(agent="", status=Ticket.Status.CLOSED)


def answer(
    ticket: str,
    customer: str,
    agent: str,
    customer_replied: CustomerReplied | None,
    context: StepContext,
) -> InquiryOutcome:
    """Send the agent's answer."""
    about = f" about “{customer_replied.reply}”" if customer_replied else ""
    message = f"Dear {customer}, {agent} has looked into your inquiry{about}."
    return settle(ticket, context.process_id, Ticket.Status.ANSWERED, message, agent)


def refund(
    ticket: str, customer: str, agent: str, context: StepContext
) -> InquiryOutcome:
    """Promise the customer the money back."""
    message = f"Dear {customer}, {agent} has sent your money back."
    return settle(ticket, context.process_id, Ticket.Status.REFUNDED, message, agent)


def ask_customer(ticket: str, agent: str, context: StepContext) -> str:
    """Ask the customer for more; the process waits for the reply."""
    question = "Could you tell us more?"
    settle(ticket, context.process_id, Ticket.Status.WAITING, question, agent)
    return question


def close(ticket: str, context: StepContext) -> InquiryOutcome:
    """Give up on a customer who does not reply."""
    message = f"No reply within {PATIENCE.days} days."
    return settle(ticket, context.process_id, Ticket.Status.CLOSED, message)


def escalate(ticket: str, triage: Triage, context: StepContext) -> InquiryOutcome:
    """Hand the inquiry to whoever leads the desk."""
    message = f"For the lead: {', '.join(triage.reasons)}"
    return settle(ticket, context.process_id, Ticket.Status.ESCALATED, message)


def settle(
    ticket: str, process_id: UUID, status: str, message: str, agent: str = ""
) -> InquiryOutcome:
    """Write where an inquiry stands; one that was started from elsewhere gets its ticket now."""
    standing = {"status": status, "message": message, "agent": agent}
    Ticket.objects.update_or_create(
        pk=ticket,
        defaults={"process_id": process_id, **standing},
    )
    return InquiryOutcome(status, message)
