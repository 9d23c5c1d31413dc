"""Which way a failure went is read from the history: never guessed from the name that its error had."""

from collections.abc import Iterator

import pytest

from orchestrator.engine.operations import decide, resume
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Incident, ProcessInstance
from orchestrator.testing import registered
from tests.apps.caught_failures import namesakes
from tests.apps.caught_failures.processes import Hurry, Mending, Rush
from tests.apps.patterns.desk import (
    finished,
    go_on,
    results,
    statuses,
    visit,
    visits,
)
from tests.services.asking import asked

__all__ = ["known"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

WAYS = ["of the function", "of another module", "below its base", "gone"]


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """Let the running code have these workflows, also while the invariants are asked for after each test."""
    with registered(Mending, Hurry, Rush):
        yield


def decided(process: ProcessInstance, step: str) -> ProcessInstance:
    run = process.step_runs.get(node=step, finished_at=None)
    decide(process.pk, run.pk, "yes", request=asked())
    return go_on(process)


@pytest.mark.parametrize("how", WAYS)
def test_resuming_behind_a_failure_goes_the_way_it_went(how: str) -> None:
    assert issubclass(namesakes.Torn, LookupError)  # it is imported, and so known
    process = finished(Mending, how)
    failed = visit(process, "sew").left
    assert (failed, statuses(process)["patch"]) == (2, "done")
    for _ in range(2):  # the second time the way's first step is not the first one's
        resume(process.pk, failed, request=asked())
        process = go_on(process)
        assert statuses(process)["keep"] == "waiting"
    process = decided(process, "keep")

    assert process.status == "completed"
    assert [run.status for run in visits(process, "patch")] == [
        "superseded",
        "superseded",
        "done",
    ]
    assert [run.status for run in visits(process, "buy")] == ["not_taken"]
    assert results(process) == {"patch": "a patch", "keep": "yes", "wear": "worn"}


def test_a_history_that_another_way_would_follow_from_is_not_resumed() -> None:
    process = finished(Mending, "gone")
    failed = visit(process, "sew").left
    assert failed is not None
    point = process.checkpoints.get(revision=failed)
    for edge in ("", "e0", "e99"):  # none, another one, and one of other code
        process.checkpoints.filter(pk=point.pk).update(edge=edge)
        with pytest.raises(OperationRefused, match="cannot read its history"):
            resume(process.pk, failed, request=asked())
        with pytest.raises(OperationRefused, match="nothing leads to patch"):
            resume(process.pk, process.revision, request=asked())
    process.checkpoints.filter(pk=point.pk).update(edge=point.edge)

    assert statuses(go_on(process))["keep"] == "waiting"


def test_a_failure_is_caught_though_nobody_waits_for_that_any_more() -> None:
    process = finished(Hurry, "gone")
    process = decided(process, "hang")
    process = decided(process, "fetch")
    failed = visit(process, "sew").left
    assert failed is not None
    assert statuses(process)["patch"] == statuses(process)["wash"] == "not_taken"
    resume(process.pk, failed, request=asked())
    process = decided(go_on(process), "keep")

    assert process.status == "completed"
    assert len(visits(process, "wear")) == 1


def test_people_need_not_see_to_a_failure_that_went_with_another_one() -> None:
    process = finished(Rush, "of another module")
    (incident,) = Incident.objects.open()
    assert (process.status, incident.step_run) == ("failed", visit(process, "sew"))
    process = decided(process, "hang")

    assert statuses(process)["sew"] == "cancelled"
    assert (process.status, results(process)["buy"]) == ("completed", "a new one")
    assert not Incident.objects.open().exists()
