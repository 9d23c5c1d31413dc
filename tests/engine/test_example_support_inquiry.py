"""Support inquiries from the first step to the last, on the sample media."""

from datetime import timedelta
from typing import Any

import pytest

from examples import readers
from examples.support_inquiry import desk
from examples.support_inquiry.findings import AgentDecision, CustomerReplied
from examples.support_inquiry.intake import take_in
from examples.support_inquiry.models import Ticket
from examples.support_inquiry.replies import reply_for_customers
from orchestrator import send_event
from orchestrator.engine import operations
from orchestrator.models import ProcessInstance, StepKind
from orchestrator.testing import pass_time
from orchestrator.testing.process import Anybody
from tests.apps.patterns.desk import go_on, insist, results, statuses, visit
from tests.readers import light_readers
from tests.services.cases import cases
from tests.services.doing import did
from tests.services.patience import wait_for
from tests.services.program import management_command, run_command

__all__ = ["light_readers"]

pytestmark = pytest.mark.django_db

READERS = {
    "describe_image": "RapidOCR",
    "transcribe_audio": "PocketSphinx",
    "extract_document": "pypdf",
    "read_text": "VADER",
}
ALL = ["late-order.flac", "overdue-invoice.png", "complaint.pdf"]


def inquiry(text: str = "It is late.", *attachments: str) -> ProcessInstance:
    """Take an inquiry in and let it go on as far as it does without a person."""
    number = take_in("Mia Sato", text, attachments).ticket
    return go_on(ProcessInstance.objects.get(correlation_key=number))


def ticket(process: ProcessInstance) -> Ticket:
    return Ticket.objects.get(process_id=process.pk)


def stands(process: ProcessInstance) -> tuple[str, str]:
    """Return the status of a process and of its ticket, after what is ready was run."""
    return go_on(process).status, ticket(process).status


def decide(process: ProcessInstance, choice: AgentDecision) -> ProcessInstance:
    asking = process.step_runs.get(kind=StepKind.ASK, finished_at=None)
    did(operations.decide, process, asking.pk, choice.value, actor=Anybody())
    return go_on(process)


@pytest.mark.once
def test_thanks_are_answered_at_once() -> None:
    process = inquiry("Thank you, everything works very well now!")

    assert stands(process) == ("completed", "answered")
    assert statuses(process)["describe_image"] == "not_taken"


@pytest.mark.django_db(transaction=True)  # reading takes longer than one may stand idle
def test_an_inquiry_in_all_media_is_merged_and_escalated() -> None:
    process = inquiry("Where is it?", *ALL)

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
    assert stands(process) == ("completed", "escalated")
    progress: Any = visit(process, "extract_document").progress
    assert progress["done"] == 2
    if all(map(readers.real, readers.NEEDED)):
        for step, reader in READERS.items():
            assert found[step]["reader"].startswith(reader)


@pytest.mark.once
def test_light_readers_lead_through_the_same_graph(light_readers: None) -> None:
    process = inquiry("Where is it?", *ALL)

    found = results(process)
    assert stands(process) == ("completed", "escalated")
    assert all(found[step]["reader"].endswith("(light)") for step in READERS)


@pytest.mark.django_db(transaction=True)  # reading takes longer than one may stand idle
@pytest.mark.once
@pytest.mark.parametrize("attachment", ["damaged-scan.png", "damaged-call.flac"])
def test_a_medium_that_cannot_be_read_is_left_to_an_agent(attachment: str) -> None:
    process = inquiry("Please look at this.", attachment)

    assert stands(process) == ("waiting", "assigned")
    assert attachment in ticket(process).message
    assert results(process)["merge"]["text"] == "Please look at this."


@cases(
    "choice, status",
    (AgentDecision.ANSWER, "answered"),
    (AgentDecision.REFUND, "refunded"),
    (AgentDecision.ESCALATE, "escalated"),
)
def test_an_agent_decides(choice: AgentDecision, status: str) -> None:
    process = inquiry()
    assert ticket(process).agent in desk.AGENTS

    assert stands(decide(process, choice)) == ("completed", status)


@pytest.fixture
def asked() -> ProcessInstance:
    """Return an inquiry about which the customer was asked."""
    process = decide(inquiry(), AgentDecision.ASK_CUSTOMER)
    assert stands(process) == ("waiting", "waiting")
    return process


def test_the_customer_is_asked_and_replies(asked: ProcessInstance) -> None:
    event = CustomerReplied(ticket(asked).ticket, "order 4711")
    send_event(event, id="reply", process_id=asked.pk)

    assert go_on(asked).status == "completed"
    assert "“order 4711”" in ticket(asked).message


def test_in_a_demonstration_customers_reply(asked: ProcessInstance) -> None:
    assert reply_for_customers() == 0

    for _ in range(2):  # the same event once more
        assert reply_for_customers(timedelta(0)) == 1
    assert go_on(asked).status == "completed"


def test_a_customer_who_does_not_reply_is_given_up(asked: ProcessInstance) -> None:
    pass_time(desk.PATIENCE)

    assert stands(asked) == ("completed", "closed")


def test_an_agent_who_does_not_decide_is_passed_over() -> None:
    process = inquiry()

    pass_time(hours=8)

    assert stands(process) == ("completed", "escalated")


def test_cancelling_takes_the_inquiry_from_its_agent() -> None:
    process = inquiry()

    did(operations.cancel, process)

    assert stands(process) == ("cancelled", "closed")
    assert ticket(process).agent == ""


def test_work_is_given_to_the_agent_who_has_the_least() -> None:
    agents = sorted(ticket(inquiry()).agent for _ in range(6))

    assert agents == sorted(desk.AGENTS * 2)


@pytest.mark.once
def test_an_attachment_that_is_not_there_needs_a_person() -> None:
    process = insist(inquiry("See the picture.", "nothing.png"))

    assert process.status == "failed"
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
@pytest.mark.parametrize("command", ["demo_inquiries", "demo_films"])
def test_a_pause_of_nothing_is_refused_in_one_line(command: str) -> None:
    result = run_command(command, "--pause", "0")

    assert result.stderr.strip() == "CommandError: --pause must be more than 0"
