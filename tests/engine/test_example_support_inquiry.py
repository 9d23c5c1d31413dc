"""Support inquiries from the first step to the last, on the sample media."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from examples import readers
from examples.support_inquiry import desk
from examples.support_inquiry.findings import AgentDecision, CustomerReplied
from examples.support_inquiry.intake import take_in
from examples.support_inquiry.models import Ticket
from examples.support_inquiry.replies import reply_for_customers
from orchestrator import send_event
from orchestrator.engine import operations
from orchestrator.engine.operations import ActionRequest
from orchestrator.models import ProcessInstance, Status, StepKind
from orchestrator.testing import pass_time
from tests.apps.patterns.desk import go_on, insist, results, statuses, visit
from tests.readers import light_readers
from tests.services.patience import wait_for
from tests.services.program import management_command, run_command

__all__ = ["light_readers"]

pytestmark = pytest.mark.django_db

ALL = ["late-order.flac", "overdue-invoice.png", "complaint.pdf"]


def inquiry(text: str = "", attachments: Sequence[str] = ()) -> ProcessInstance:
    """Take an inquiry in and let it go on as far as it does without a person."""
    number = take_in("Mia Sato", text, attachments).ticket
    return go_on(ProcessInstance.objects.get(correlation_key=number))


def ticket(process: ProcessInstance) -> Ticket:
    return Ticket.objects.get(process_id=process.pk)


def decide(
    process: ProcessInstance, choice: AgentDecision, person: User
) -> ProcessInstance:
    request = ActionRequest(person, uuid4(), "looked into it", process.revision)
    asking = process.step_runs.get(kind=StepKind.ASK, finished_at=None)
    operations.decide(process.pk, asking.pk, choice.value, request=request)
    return go_on(process)


@pytest.mark.once
def test_thanks_are_answered_at_once() -> None:
    process = inquiry("Thank you, everything works very well now!")

    assert process.status == Status.COMPLETED
    assert ticket(process).status == Ticket.Status.ANSWERED
    assert statuses(process)["describe_image"] == "not_taken"


@pytest.mark.django_db(transaction=True)  # reading takes longer than one may stand idle
def test_an_inquiry_in_all_media_is_merged_and_escalated() -> None:
    process = inquiry("Where is it?", ALL)

    found = results(process)
    assert found["merge"]["text"].splitlines() == [
        "Where is it?",
        "Invoice 4711 overdue",
        "my order is late and i want my money back",
        "Complaint",
        "Order 4711 arrived broken.",
        "The box was open.",
        "I want a refund of 120 euros",
        "before the end of the month.",
    ]
    assert found["prioritize"]["priority"] == "urgent"
    assert process.status == Status.COMPLETED
    assert ticket(process).status == Ticket.Status.ESCALATED
    progress: Any = visit(process, "extract_document").progress
    assert progress["done"] == 2
    for step, reader in (
        ("describe_image", "RapidOCR"),
        ("transcribe_audio", "PocketSphinx"),
        ("extract_document", "pypdf"),
        ("read_text", "VADER"),
    ):
        real = all(map(readers.real, readers.NEEDED))
        assert not real or found[step]["reader"].startswith(reader)


@pytest.mark.once
def test_light_readers_lead_through_the_same_graph(light_readers: None) -> None:
    process = inquiry("Where is it?", ALL)

    found = results(process)
    assert ticket(process).status == Ticket.Status.ESCALATED
    for step in ("describe_image", "transcribe_audio", "extract_document", "read_text"):
        assert found[step]["reader"].endswith("(light)")


@pytest.mark.django_db(transaction=True)  # reading takes longer than one may stand idle
@pytest.mark.once
@pytest.mark.parametrize("attachment", ["damaged-scan.png", "damaged-call.flac"])
def test_a_medium_that_cannot_be_read_is_left_to_an_agent(attachment: str) -> None:
    process = inquiry("Please look at this.", [attachment])

    assert process.status == Status.WAITING
    assert ticket(process).status == Ticket.Status.ASSIGNED
    assert attachment in ticket(process).message
    assert results(process)["merge"]["text"] == "Please look at this."


@pytest.mark.parametrize(
    ("choice", "status"),
    [
        (AgentDecision.ANSWER, Ticket.Status.ANSWERED),
        (AgentDecision.REFUND, Ticket.Status.REFUNDED),
        (AgentDecision.ESCALATE, Ticket.Status.ESCALATED),
    ],
)
def test_an_agent_decides(
    choice: AgentDecision, status: str, administrator: User
) -> None:
    process = inquiry("My parcel is late.")
    assert ticket(process).agent in desk.AGENTS

    decide(process, choice, administrator)

    assert process.status == Status.COMPLETED
    assert ticket(process).status == status


def test_the_customer_is_asked_and_replies(administrator: User) -> None:
    process = decide(inquiry("It is late."), AgentDecision.ASK_CUSTOMER, administrator)
    assert process.status == Status.WAITING
    assert ticket(process).status == Ticket.Status.WAITING

    event = CustomerReplied(ticket(process).ticket, "order 4711")
    send_event(event, id="reply", process_id=process.pk)
    go_on(process)

    assert process.status == Status.COMPLETED
    assert "“order 4711”" in ticket(process).message


def test_in_a_demonstration_customers_reply(administrator: User) -> None:
    process = decide(inquiry("It is late."), AgentDecision.ASK_CUSTOMER, administrator)
    assert reply_for_customers() == 0

    assert reply_for_customers(timedelta(0)) == 1
    assert reply_for_customers(timedelta(0)) == 1  # the same event once more
    go_on(process)

    assert process.status == Status.COMPLETED


def test_a_customer_who_does_not_reply_is_given_up(administrator: User) -> None:
    process = decide(inquiry("It is late."), AgentDecision.ASK_CUSTOMER, administrator)

    pass_time(desk.PATIENCE)
    go_on(process)

    assert process.status == Status.COMPLETED
    assert ticket(process).status == Ticket.Status.CLOSED


def test_an_agent_who_does_not_decide_is_passed_over() -> None:
    process = inquiry("It is late.")

    pass_time(timedelta(hours=8))
    go_on(process)

    assert process.status == Status.COMPLETED
    assert ticket(process).status == Ticket.Status.ESCALATED


def test_cancelling_takes_the_inquiry_from_its_agent(administrator: User) -> None:
    process = inquiry("It is late.")
    request = ActionRequest(administrator, uuid4(), "a mistake", process.revision)

    operations.cancel(process.pk, request=request)
    go_on(process)

    assert process.status == Status.CANCELLED
    assert (ticket(process).agent, ticket(process).status) == ("", "closed")


def test_work_is_given_to_the_agent_who_has_the_least() -> None:
    processes = [inquiry("It is late.") for _ in range(6)]

    agents = sorted(ticket(process).agent for process in processes)
    assert agents == sorted(desk.AGENTS * 2)


@pytest.mark.once
def test_an_attachment_that_is_not_there_needs_a_person() -> None:
    process = insist(inquiry("See the picture.", ["nothing.png"]))

    assert process.status == Status.FAILED
    assert statuses(process)["describe_image"] == "failed"


@pytest.mark.django_db(transaction=True)
def test_inquiries_stream_in_until_the_end_is_asked_for() -> None:
    stream = management_command("demo_inquiries", "--pause", "0.05", "--seed", "1")
    stream.start()
    wait_for(lambda: Ticket.objects.count() >= 10, 20)

    assert stream.stop() == 0
    assert ProcessInstance.objects.count() == Ticket.objects.count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.once
def test_a_pause_of_nothing_is_refused_in_one_line() -> None:
    result = run_command("demo_inquiries", "--pause", "0")

    assert result.stderr.strip() == "CommandError: --pause must be more than 0"
