"""An event that several definitions know: those without a process of its key, where another one takes it or none."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from monitoring.lists.events.possible_processes import preview_text
from orchestrator import send_event
from orchestrator.configuration.conf import conf
from orchestrator.definition import ProcessManager
from orchestrator.engine.operations import preview_targets
from orchestrator.exceptions import InvalidDefinition
from orchestrator.models import InboxEvent, Incident
from orchestrator.testing import found, pass_time, registered, run, started
from tests.apps.process_managers import several as s
from tests.services.pruned import prune

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

LONG = timedelta(seconds=conf().UNROUTED_SECONDS + 60)
PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS + 1)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(s.Accounts, s.Store, s.Feedback, s.Bystander):
        yield


def shipped() -> None:
    send_event(s.OrderShipped("1"), id="shipped")
    run()


def verdicts() -> dict[str, str]:
    """Return the verdict of each definition about the order's shipping."""
    rows = InboxEvent.objects.filter(type="OrderShipped")
    return dict(rows.values_list("target", "verdict"))


def told() -> list[str]:
    return [incident.message for incident in Incident.objects.open()]


def test_where_one_definition_takes_an_event_nobody_is_told_of_the_others() -> None:
    started(s.Accounts, s.OrderPaid("1"))
    shipped()
    pass_time(PATIENCE)
    assert (verdicts()["accounts"], verdicts()["store"]) == ("moved", "unrouted")
    assert told() == []

    pass_time(LONG)
    assert verdicts()["store"] == "ignored"
    assert told() == []


def test_nobody_is_told_after_the_process_that_has_taken_it_was_removed() -> None:
    started(s.Accounts, s.OrderPaid("1"))
    shipped()
    pass_time(days=3)
    prune("--keep", "2")
    assert verdicts() == {
        "bystander": "ignored",
        "feedback": "ignored",
        "store": "unrouted",
    }
    pass_time(days=5)
    assert told() == []

    started(s.Store, s.OrderPacked("1"))
    assert verdicts()["store"] == "moved"


def test_the_others_take_it_when_their_process_starts() -> None:
    started(s.Accounts, s.OrderPaid("1"))
    shipped()
    pass_time(PATIENCE)
    started(s.Store, s.OrderPacked("1"))

    assert found(s.Store).status == "completed"
    assert verdicts()["store"] == "moved"


def test_where_no_definition_takes_an_event_people_are_told() -> None:
    shipped()
    pass_time(PATIENCE)

    assert len(told()) == 2
    assert {one.split(":")[0] for one in told()} == {"no process takes OrderShipped"}


def test_what_was_told_is_resolved_when_another_definition_takes_it() -> None:
    shipped()
    pass_time(PATIENCE)
    started(s.Accounts, s.OrderPaid("1"))
    pass_time(days=2)

    assert told() == []


def test_a_definition_may_ignore_events_whose_process_is_missing() -> None:
    shipped()
    assert (verdicts()["feedback"], verdicts()["bystander"]) == ("ignored", "ignored")

    feedback = started(s.Feedback, s.Order("1"))
    assert feedback.status == "waiting"
    send_event(s.OrderShipped("1"), id="again")
    run()
    assert feedback.status == "completed"


def test_the_preview_tells_that_a_definition_ignores_an_event_whose_process_is_missing() -> (
    None
):
    found = preview_targets("OrderShipped", {"order": "1"})
    assert {name: preview.outcome for name, _, preview in found} == {
        "accounts": "unrouted",
        "bystander": "missing",
        "feedback": "missing",
        "store": "unrouted",
    }
    said = {preview_text(preview, {}) for _, _, preview in found}
    assert "There is none that takes it: it would be ignored." in said


def test_an_event_for_a_process_that_is_missing_by_its_id_is_not_ignored() -> None:
    feedback = started(s.Feedback, s.Order("2"))
    other = feedback.id.__class__(int=feedback.id.int + 1)
    send_event(s.OrderShipped("1"), id="1", process_id=other)
    pass_time(PATIENCE)

    assert InboxEvent.objects.get(process_id=other).verdict == "unrouted"


def test_another_word_for_a_missing_process_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match='must be "ignore" or "park"'):

        class Wrong(ProcessManager):
            Step, Data, correlation = s.Stage, s.Order, "order"
            missing = "reject"  # type: ignore[assignment]  # the mistake
            transitions = s.Store.transitions
