"""Live processes whose steps the running code no longer has: they are set aside, and go on where the code has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from orchestrator import registry, start_process
from orchestrator.definition import Event, Workflow, sleep, step, then, wait
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.storage import definitions
from orchestrator.engine.work import leases
from orchestrator.models import Lost, StepRun
from orchestrator.testing import Process, pass_time, run, started
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db


class Called(Event):
    number: int


def answer(call: Called) -> int:
    return call.number


def hear(ring: Called) -> int:
    return ring.number


def give_up() -> int:
    return 0


MINUTE = timedelta(minutes=1)


class Before(Workflow):
    name = "line"
    flow = (then(sleep(MINUTE, "pause"), wait(Called, "call", gives="call"), answer),)


class Patient(Workflow):
    name = "patient"
    flow = (
        then(wait(Called, "call", gives="call", deadline=MINUTE), answer),
        then(wait(Called, "ring", gives="ring", deadline=MINUTE, late=give_up), hear),
    )


class After(Workflow):
    name = "line"
    flow = (then(sleep(MINUTE, "rest"), wait(Called, "bell", gives="call"), answer),)


charged: list[str] = []


def charge() -> None:
    charged.append("once")


def bill() -> None:
    charged.append("by its other name")


class ChargedBefore(Workflow):
    name = "charging"
    flow = (step(charge, idempotent=False),)


class ChargedAfter(Workflow):
    name = "charging"
    flow = (step(bill, idempotent=False),)


known = knowing(Before, Patient, ChargedBefore)


@contextmanager
def other_release() -> Iterator[None]:
    """Run the code in which the steps have other names."""
    definitions.forget_definitions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.definitions, ("line", 1), After)
        patch.setitem(registry.definitions, ("charging", 1), ChargedAfter)
        patch.delitem(registry.definitions, ("patient", 1))
        yield
    definitions.forget_definitions()


def set_aside(process: Process, step: str) -> bool:
    told = f"the running code has no step {step} now"
    return process.incidents == [told] and process.status != "failed"


def test_a_sleep_that_is_gone_is_over_where_the_code_has_it() -> None:
    line = started(Before)
    with other_release():
        pass_time(minutes=2)
        assert set_aside(line, "pause")
        assert line.open_steps == ["pause"]
    pass_time(minutes=1)

    assert (line.open_steps, line.incidents) == (["call"], [])


def test_an_event_for_a_wait_that_is_gone_is_taken_where_the_code_has_it() -> None:
    line = started(Before)
    pass_time(minutes=2)
    with other_release():
        assert line.send(Called(7)) == "received"
        pass_time(minutes=2)
        assert set_aside(line, "call")
    pass_time(minutes=1)

    assert (line.status, line.result) == ("completed", 7)
    assert line.incidents == []


def too_late_for_the_code() -> Process:
    """A process with waits whose deadlines have passed where the code does not know it."""
    process = started(Patient)
    with other_release():
        pass_time(minutes=1, seconds=1)
        assert len(process.incidents) == 2
    return process


def test_what_was_said_of_a_wait_is_settled_by_its_event() -> None:
    process = too_late_for_the_code()
    process.send(Called(1))
    process.send(Called(2))

    assert (process.status, process.incidents) == ("completed", [])
    assert not StepRun.objects.exclude(error="").exists()


def test_what_was_said_of_a_wait_is_settled_by_its_deadline() -> None:
    process = too_late_for_the_code()
    pass_time(minutes=1)

    assert (process.path[-2:], process.incidents) == (["give_up", "call"], [])
    assert process.instance.escalation_level == 1


def test_a_step_whose_worker_died_is_not_run_again_for_having_been_set_aside() -> None:
    charged.clear()
    receipt = start_process(ChargedBefore)
    (taken,) = step_runs.claim("default", "dead", 1, 10, **CLAIMED)
    at = leases.work_name(taken.work)
    leases.end_leases(["dead"], running={at: Lost.DIED})
    charging = Process(receipt.process_id)
    with other_release():
        run()
        assert charging.incidents == ["charging has no step charge now"]
    pass_time(minutes=1)

    assert charged == []
    assert charging.incidents[0].startswith("Interrupted: ")
