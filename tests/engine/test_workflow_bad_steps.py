"""Steps and inputs that are as bad as can be: people are told in words, neighbours are unaffected, workers go on."""

from typing import Any

import pytest
from django.db import connection, transaction

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.exceptions import (
    ConflictingEvent,
    InvalidDefinition,
    InvalidMessage,
    KeyTaken,
)
from orchestrator.models import Incident, ProcessInstance, Status, StepRun
from tests.apps.patterns import misbehaving, unstorable
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import complaint, finished, insist, launch, results, visit
from tests.apps.patterns.fixtures import Start, flows, said, start
from tests.apps.patterns.ledger import noted
from tests.apps.patterns.unstorable import Keyed, Order
from tests.services.cases import cases
from tests.services.patience import wait_for

__all__ = ["flows", "start"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]

LATE = "TimedOut: it ran longer than it may, or did not report in time, 2 times"
DEAD = "WorkerDied: the worker died or was killed in each of 2 attempts"
ENDS = "which ends programs; a step fails by raising an Exception"
COMPLAINTS = {
    "swallow": LATE,
    "hold the interpreter": LATE,
    "exit the process": DEAD,
    "exit": f"ExitRefused: misbehave raised SystemExit: 3, {ENDS}",
    "interrupt": f"ExitRefused: misbehave raised KeyboardInterrupt, {ENDS}",
    "end a generator": f"ExitRefused: misbehave raised GeneratorExit, {ENDS}",
    "cancel": f"ExitRefused: misbehave raised CancelledError, {ENDS}",
    "recursion": "RecursionError: maximum recursion depth exceeded",
    "memory": "MemoryError: ",
    "without words": "Unspeakable: its text cannot be had (RuntimeError)",
    "open transaction": "Permanent: misbehave left a database transaction open; what it wrote there is undone",
}
FINE = {"fork": "by the worker", "broken connection": "None", "": "well"}


def settled() -> bool:
    """Whether every process waits for people, and has nothing more to run: branches beside a failed step go on."""
    live = ProcessInstance.objects.live().exclude(status=Status.FAILED)
    to_do = StepRun.objects.filter(status__in=["ready", "running", "retrying"])
    return not (live.exists() or to_do.exists())


def workflow_of(how: str) -> type[Workflow]:
    """Return the one whose step has little time for those that take for ever, and else the one that has enough."""
    hangs = COMPLAINTS.get(how) == LATE
    return misbehaving.Hanging if hangs else misbehaving.Misbehaving


@pytest.mark.django_db(transaction=True)
def test_workers_survive_whatever_steps_do_and_say_what_it_was(start: Start) -> None:
    how = [*COMPLAINTS, *FINE, *[""] * 5]
    processes = {launch(workflow_of(one), one): one for one in how}
    # A worker that dies before the commit has used an attempt up.
    settling = launch(misbehaving.Settling, "die")
    charging = launch(misbehaving.Charging, "die")
    workers = start(2)
    wait_for(settled, 25, lambda: said(workers))

    told = Incident.objects.open().select_related("instance")
    incidents = {processes.get(one.instance, ""): one.message for one in told}
    assert set(incidents) == {*COMPLAINTS, ""}
    for one, message in COMPLAINTS.items():
        assert incidents[one].startswith(message), one
    for process, one in processes.items():
        process.refresh_from_db()
        if one in FINE:
            assert results(process)["follow"] == FINE[one]
    assert complaint(settling).message == DEAD
    assert complaint(charging).message.startswith("Interrupted: ")
    expected = {"followed well": 6, "followed by the worker": 1, "followed None": 1}
    assert noted() == {**expected, "settled": 2, "charged": 1}
    wait_for(lambda: len(workers.pids) == 2, 5)


@pytest.mark.django_db(transaction=True)
def test_what_must_not_run_twice_does_not_when_a_worker_ends(start: Start) -> None:
    process = launch(misbehaving.Sending, [0, 1, 2, 3])
    workers = start(1)
    wait_for(settled, 15, lambda: said(workers))

    assert noted() == {f"sent {number}": 1 for number in range(4)}
    assert complaint(process).message.startswith("Interrupted: ")


# Without workers: the same failures where the engine runs in another program


def test_what_would_end_the_program_is_a_failed_attempt() -> None:
    process = insist(finished(misbehaving.Misbehaving, "interrupt"), 1)

    assert (process.status, visit(process, "misbehave").attempt) == ("failed", 2)
    assert complaint(process).message == COMPLAINTS["interrupt"]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_a_step_left_open_is_undone() -> None:
    process = finished(misbehaving.Misbehaving, "open transaction")

    assert process.status == Status.FAILED
    assert not connection.in_atomic_block
    assert noted() == {}
    assert finished(p.Chain, 1).status == Status.COMPLETED


# Results


REASONS = {
    "an object": "Unable to serialize unknown type",
    "a set of objects": "Unable to serialize unknown type",
    "NaN": "NaN and Infinity are not JSON numbers",
    "2 MB": "it has 2,000,002 bytes as JSON, at most 262,144 are stored",
    "NUL": "text must not contain the NUL character",
    "a lone surrogate": "surrogate",
    "depth 100": "nested deeper than 64 levels",
    "depth 1000": "depth exceeded",
    "a generator": "a generator has no value yet",
    "an awaitable": "a coroutine has no value yet",
    "itself inside": "Circular reference",
    "a large number": "too many digits",
}


def test_a_result_that_cannot_be_stored_is_told_at_once() -> None:
    start = "InvalidMessage: the result of hand_over: "
    for how, reason in REASONS.items():
        process = finished(unstorable.HandingOver, how)

        incident = complaint(process)
        assert (incident.step, visit(process, "hand_over").attempt) == ("hand_over", 1)
        assert incident.message.startswith(start), how
        assert reason in incident.message, how
    assert noted() == {}


@pytest.mark.parametrize("workflow", [unstorable.WrongType, unstorable.WrongField])
def test_a_result_of_another_type_is_told_at_once(workflow: type[Workflow]) -> None:
    process = finished(workflow, "text")

    incident = complaint(process)
    assert incident.step in ("wrong_type", "wrong_field")
    assert f"the result of {incident.step}" in incident.message
    assert "valid integer" in incident.message or "`int`" in incident.message


# Inputs


@cases(
    "definition, given, error, reason",
    (Keyed, p.Number(1), InvalidMessage, "keyed starts with Order, not with"),
    (Keyed, {"order": "A"}, InvalidMessage, "keyed starts with Order, not with"),
    (Keyed, Order("A", "many"), InvalidMessage, "Expected `int`"),  # type: ignore[arg-type]
    (Keyed, Order("A", note="x" * 300_000), InvalidMessage, "at most"),
    (Keyed, Order("A", note="\0"), InvalidMessage, "NUL"),
    (unstorable.Circular, p.Number(1), InvalidDefinition, ""),  # it contradicts itself
)
def test_a_process_does_not_start_with_a_bad_input_or_graph(
    definition: type[Workflow], given: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error) as refused:
        start_process(definition, given)

    assert reason in str(refused.value)
    assert not ProcessInstance.objects.exists()


def test_the_same_start_again_gives_the_first_receipt_and_another_is_refused() -> None:
    first, second = (start_process(Keyed, Order("A"), id="1") for _ in range(2))
    assert first.process_id == second.process_id == ProcessInstance.objects.get().pk
    assert (first.repeated, second.repeated) == (False, True)

    with pytest.raises(ConflictingEvent, match="with another input"):
        start_process(Keyed, Order("A", 2), id="1")
    with transaction.atomic():  # it stays usable
        with pytest.raises(KeyTaken, match="live keyed with the key 'A'"):
            start_process(Keyed, Order("A"), id="2")
        start_process(Keyed, Order("B"), id="3")
    assert ProcessInstance.objects.count() == 2
    with pytest.raises(ConflictingEvent):
        start_process(p.Chain, p.Number(1), process_id=first.process_id)
