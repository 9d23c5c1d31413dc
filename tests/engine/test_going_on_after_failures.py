"""Failed work that goes on: a parent with its sub-process, a step that was set aside, processes retried together."""

from collections.abc import Sequence
from enum import StrEnum

import pytest
from django.contrib.auth.models import User

from orchestrator import registry, start_process
from orchestrator.definition import Workflow, ask, join, run, start, step, then
from orchestrator.engine.operations import pause, skip, unpause
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.group_commit import GroupCommit, Writes
from orchestrator.engine.storage import definitions
from orchestrator.models import IssuedCommand
from orchestrator.testing import Process, failing, started
from orchestrator.testing import run as run_due
from tests.apps.process_managers.desk import tell
from tests.apps.process_managers.failures import Failures, fail
from tests.apps.process_managers.messages import ParcelPacked
from tests.both.test_joins_of_one_change import rung
from tests.services.asking import asked
from tests.services.bulk import begun, frozen, slice_of, verdicts
from tests.services.doing import fresh
from tests.services.operated import knowing

__all__ = ["fail", "rung"]

pytestmark = pytest.mark.django_db

FAILED = {"status": "failed"}


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


def buy() -> str:
    return "bought"


class Errand(Workflow):
    """Buys something, and asks."""

    flow = (then(step(buy, retries=0), ask("keep", Answer)),)


errand, sure = run(Errand, "errand"), ask("sure", Answer)


def both() -> None: ...


class Hasty(Workflow):
    """Gives its question up when its errand fails."""

    flow = (start(errand, sure), join(errand, sure, into=both, on_failure="fail_fast"))


def charge() -> None: ...


def bill() -> None: ...


class Charging(Workflow):
    name = "charging"
    flow = (step(charge),)


class Renamed(Workflow):
    """The same in another release, in which the step has another name."""

    name = "charging"
    flow = (step(bill),)


known = knowing(Errand, Hasty, Charging)


# Sub-processes


def mended() -> Process:
    """Return a process that has failed with its errand, which goes on and has not told it yet."""
    with failing(buy, ConnectionError("no line")):
        process = started(Hasty)
    assert (process.status, process.open_steps) == ("failed", ["errand"])
    (child,) = process.children
    bought = child.instance.step_runs.get(node="buy")
    skip(child.id, bought.pk, "a gift", request=asked())
    return process


def test_what_the_failure_of_a_sub_process_gave_up_comes_back_when_that_goes_on() -> (
    None
):
    process = mended()
    run_due()

    assert (process.status, process.open_steps) == ("waiting", ["errand", "sure"])
    assert process.incidents == []


def test_the_parent_of_a_sub_process_that_is_paused_stands_failed_until_that_goes_on() -> (
    None
):
    process = mended()
    (child,) = process.children
    pause(child.id, request=asked())
    run_due()
    assert (process.status, process.open_steps) == ("failed", ["errand"])

    unpause(child.id, request=asked())
    run_due()
    assert (process.status, process.open_steps) == ("waiting", ["errand", "sure"])


# Steps


def test_a_step_that_was_set_aside_runs_at_once_when_a_person_retries_it() -> None:
    process = Process(start_process(Charging).process_id)
    definitions.forget_definitions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.definitions, ("charging", 1), Renamed)
        run_due()
    definitions.forget_definitions()
    run_due()
    assert (process.status, len(process.incidents)) == ("running", 1)

    process.retry()
    assert process.status == "completed"


# Processes


@pytest.mark.usefixtures("parcels")
def test_workers_carry_out_the_commands_of_processes_that_are_retried_together(
    fail: Failures, operator: User, rung: list[str]
) -> None:
    fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    rung.clear()
    slice_of(operation)

    assert verdicts(operation) == {"tried": 2}
    booked = IssuedCommand.objects.filter(type="BookCourier")
    assert [command.status for command in booked] == ["ready", "ready"]
    assert rung == ["default"]


@pytest.mark.usefixtures("parcels")
def test_an_event_that_is_parked_while_processes_are_retried_together_is_counted(
    fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel, _ = fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    untold, commit = [parcel], group_commit.commit_changes

    def commit_late(changes: Sequence[Writes]) -> GroupCommit:
        while untold:
            assert tell(untold.pop(), ParcelPacked(4)).verdict == "parked"
        return commit(changes)

    monkeypatch.setattr(group_commit, "commit_changes", commit_late)
    slice_of(operation)

    assert verdicts(operation) == {"tried": 2}
    assert fresh(parcel).parked == 1
