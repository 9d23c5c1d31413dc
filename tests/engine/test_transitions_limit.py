"""A process that has made all the transitions it may: what its people, its parent and an operation on many can do."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from orchestrator.definition import Workflow
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations import cancel, restart, retry
from orchestrator.models import ProcessInstance
from tests.apps.compensation.journal import forget, undone
from tests.apps.compensation.processes import WORKFLOWS, Choice, Undoable
from tests.apps.patterns import patterns
from tests.apps.patterns.desk import finished, statuses
from tests.apps.subprocess_failures import processes as p
from tests.services.asking import asked
from tests.services.bulk import a_moment, begun, frozen, slice_of, verdicts
from tests.services.cases import cases
from tests.services.doing import refused
from tests.services.operated import failed, knowing, operated, troubled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("errands")]

MANY = 1_000

known = knowing(*p.WORKFLOWS, *WORKFLOWS, patterns.FanOut, patterns.CatchOne)


@pytest.fixture
def errands() -> None:
    """Begin with nothing done and nothing wrong."""
    forget()


def limit(settings: Settings, most: int) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "TRANSITIONS_LIMIT": most}


def at_its_limit(settings: Settings) -> ProcessInstance:
    """Return a process that has failed, and whose next transition would be one too many."""
    process = failed("buy", of=p.Plain)
    limit(settings, process.revision)
    return process


@cases(
    "definition, given, most",
    (patterns.FanOut, list(range(10)), 3),
    (patterns.CatchOne, -1, 1),  # another way than failing
)
def test_a_process_that_goes_on_and_on_is_stopped(
    definition: type[Workflow], given: Any, most: int, settings: Settings
) -> None:
    limit(settings, most)

    process = finished(definition, given)

    assert process.status == "failed"
    told = process.incidents.open().order_by("pk")[0].message
    assert f"has made {most} transitions" in told


def test_it_can_be_cancelled_and_not_tried_again(settings: Settings) -> None:
    process = at_its_limit(settings)

    refused("the most it may", retry, process)
    operated(cancel, process)

    assert (process.status, process.open_steps) == ("cancelled", 0)


def test_what_it_has_done_is_undone_before(settings: Settings) -> None:
    process = finished(Undoable)
    limit(settings, process.revision)

    assert operated(cancel, process).status == "cancelled"
    assert undone == ["release 2 nights in Nara", "release flight to Nara"]


def test_it_can_be_restarted_as_new(settings: Settings) -> None:
    process = at_its_limit(settings)

    restart(process.pk, {"town": "Nara", "errands": 1}, request=asked())

    process.refresh_from_db()
    assert process.status == "cancelled"


def test_a_rule_of_its_parent_takes_its_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = ProcessChange._check_limit

    def check_child(change: ProcessChange) -> None:
        limit(settings, 2 if change.instance.name == "errand" else MANY)
        check(change)

    monkeypatch.setattr(ProcessChange, "_check_limit", check_child)
    process = troubled(p.Caught, buy=ConnectionError("no line"))

    assert statuses(process)["errand"] == "failed"
    assert (process.status, process.incidents.open().count()) == ("completed", 0)


def test_operations_on_many_go_on_beside_it(settings: Settings, operator: User) -> None:
    some = [failed("plan", of=Choice) for _ in range(3)]
    a_moment()
    limit(settings, MANY)
    rows = ProcessInstance.objects.filter(pk=some[0].pk)
    rows.update(revision=MANY)

    operation = slice_of(frozen(begun(operator, {"status": "failed"}, 3)))

    rows.update(revision=some[0].revision)  # as its history has it
    assert verdicts(operation) == {"refused": 1, "tried": 2}
