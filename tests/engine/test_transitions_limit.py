"""A process that has made all the transitions it may: what its people, its parent and an operation on many can do."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from orchestrator import Permanent
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations import cancel, restart, retry
from orchestrator.exceptions import OperationRefused
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered
from tests.apps.compensation.journal import faults, forget, undone
from tests.apps.compensation.processes import WORKFLOWS, Choice, Undoable
from tests.apps.patterns.desk import finished, go_on, statuses
from tests.apps.subprocess_failures import processes as p
from tests.services.asking import asked
from tests.services.bulk import a_moment, begun, frozen, slice_of, verdicts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("errands")]

MANY = 1_000


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Let the running code have these workflows: also while the invariants are asked for after each test."""
    with registered(*p.WORKFLOWS, *WORKFLOWS):
        yield


@pytest.fixture
def errands(known: None) -> None:
    """Begin with nothing done and nothing wrong."""
    forget()


def limit(settings: Settings, most: int) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "TRANSITIONS_LIMIT": most}


def at_its_limit(settings: Settings) -> ProcessInstance:
    """Return a process that has failed, and whose next transition would be one too many."""
    faults["buy"] = ConnectionError("no line")
    process = finished(p.Plain)
    assert process.status == "failed"
    limit(settings, process.revision)
    return process


def test_it_cannot_be_tried_again_and_its_button_says_why(settings: Settings) -> None:
    process = at_its_limit(settings)

    with pytest.raises(OperationRefused, match="the most it may"):
        retry(process.pk, request=asked())


def test_it_can_be_cancelled(settings: Settings) -> None:
    process = at_its_limit(settings)

    cancel(process.pk, request=asked())

    process = go_on(process)
    assert (process.status, process.open_steps) == ("cancelled", 0)


def test_what_it_has_done_is_undone_before(settings: Settings) -> None:
    process = finished(Undoable)
    limit(settings, process.revision)

    cancel(process.pk, request=asked())

    process = go_on(process)
    assert process.status == "cancelled"
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
    faults["buy"] = ConnectionError("no line")
    process = finished(p.Caught)

    assert statuses(process)["errand"] == "failed"
    assert (process.status, process.incidents.open().count()) == ("completed", 0)


def test_an_operation_on_many_goes_on_beside_it(
    settings: Settings, operator: User
) -> None:
    faults["plan"] = Permanent("no line")
    some = [finished(Choice) for _ in range(3)]
    faults.clear()
    a_moment()
    limit(settings, MANY)
    rows = ProcessInstance.objects.filter(pk=some[0].pk)
    rows.update(revision=MANY)

    operation = slice_of(frozen(begun(operator, {"status": "failed"}, 3)))

    rows.update(revision=some[0].revision)  # as its history has it
    assert verdicts(operation) == {"refused": 1, "tried": 2}
