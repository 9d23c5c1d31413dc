"""Which way a failure went is read from the history: never guessed from the name that its error had."""

import pytest

from orchestrator.engine.operations import resume
from orchestrator.models import Incident
from tests.apps.caught_failures import namesakes
from tests.apps.caught_failures.processes import Hurry, Mending, Rush
from tests.apps.patterns.desk import finished, go_on, results, statuses, visit, visits
from tests.services.doing import refused
from tests.services.operated import decided, knowing, operated, outcome

pytestmark = pytest.mark.django_db

known = knowing(Mending, Hurry, Rush)

WAYS = ["of the function", "of another module", "below its base", "gone"]


@pytest.mark.parametrize("how", WAYS)
def test_resuming_behind_a_failure_goes_the_way_it_went(how: str) -> None:
    assert issubclass(namesakes.Torn, LookupError)  # it is imported, and so known
    process = finished(Mending, how)
    failed = visit(process, "sew").left
    assert (failed, statuses(process)["patch"]) == (2, "done")
    for _ in range(2):  # the second time the way's first step is not the first one's
        operated(resume, process, failed)
        assert statuses(process)["keep"] == "waiting"

    assert decided(process, "keep").status == "completed"
    patches = [run.status for run in visits(process, "patch")]
    assert patches == ["superseded", "superseded", "done"]
    assert visit(process, "buy").status == "not_taken"
    assert results(process) == {"patch": "a patch", "keep": "yes", "wear": "worn"}


def test_a_history_that_another_way_would_follow_from_is_not_resumed() -> None:
    process = finished(Mending, "gone")
    failed = visit(process, "sew").left or 0
    points = process.checkpoints.filter(revision=failed)
    usual = points.get().edge
    for edge in ("", "e0", "e99"):  # none, another one, and one of other code
        points.update(edge=edge)
        refused("cannot read its history", resume, process, failed)
        refused("nothing leads to patch", resume, process, process.revision)
    points.update(edge=usual)

    assert statuses(go_on(process))["keep"] == "waiting"


def test_a_failure_is_caught_though_nobody_waits_for_that_any_more() -> None:
    process = decided(decided(finished(Hurry, "gone"), "hang"), "fetch")
    failed = visit(process, "sew").left
    assert statuses(process)["patch"] == statuses(process)["wash"] == "not_taken"
    operated(resume, process, failed)

    assert decided(process, "keep").status == "completed"
    assert len(visits(process, "wear")) == 1


def test_people_need_not_see_to_a_failure_that_went_with_another_one() -> None:
    process = finished(Rush, "of another module")
    (incident,) = Incident.objects.open()
    assert (process.status, incident.step_run) == ("failed", visit(process, "sew"))
    decided(process, "hang")

    assert statuses(process)["sew"] == "cancelled"
    assert outcome(process, "buy") == ("completed", "a new one")
    assert not Incident.objects.open().exists()
