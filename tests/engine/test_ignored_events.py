"""`ignore(Event)` in a flow and `otherwise` of a wait: events that come early, late, twice and together."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count, permutations

import pytest

from monitoring.lists.events.possible_processes import preview_text
from orchestrator import send_event
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event, Workflow
from orchestrator.engine.operations import pause, preview_event, unpause
from orchestrator.models import InboxEvent, Incident
from orchestrator.testing import Process, failing, pass_time, registered, run, started
from tests.apps.compensation.steps import Answer
from tests.apps.patterns import ignoring as i
from tests.services.asking import asked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS + 1)
numbers = count(1)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(*i.ALL):
        yield


def begun(definition: type[Workflow], key: str = "1") -> Process:
    return started(definition, i.Offer(key))


def came(by: str, key: str = "1") -> i.OfferCame:
    return i.OfferCame(key, by)


def signed(form: str, key: str = "1") -> i.OfferSigned:
    return i.OfferSigned(key, form)


def sent(process: Process, *events: Event) -> list[str]:
    """Send events that are claimed together. Return their verdicts."""
    ids = [f"event {next(numbers)}" for _ in events]
    for id, event in zip(ids, events, strict=True):
        send_event(event, id=id, process_id=process.id)
    run()
    rows = {row.event_id: row for row in InboxEvent.objects.filter(event_id__in=ids)}
    return [rows[id].verdict for id in ids]


def told() -> list[str]:
    return sorted(Incident.objects.open().values_list("message", flat=True))


# The row in the flow


def test_a_late_event_of_a_race_is_ignored_while_the_process_lives_and_after_its_end() -> (
    None
):
    process = begun(i.Race)
    assert sent(process, came("B")) == ["moved"]
    assert process.open_steps == ["approve"]
    assert sent(process, came("A")) == ["ignored"]
    assert sent(process, came("A"), came("B")) == ["ignored", "ignored"]

    process.answer("approve", Answer.YES)
    assert process.status == "completed"
    assert sent(process, came("A")) == ["ignored"]
    pass_time(PATIENCE)
    assert told() == []


def test_without_the_row_people_are_told_of_the_late_event() -> None:
    process = begun(i.Loud)
    assert sent(process, came("B"), came("A")) == ["moved", "parked"]
    pass_time(PATIENCE)
    assert told() == ["OfferCame is not expected in step approve"]


def test_events_of_a_race_that_are_claimed_together_come_to_the_same() -> None:
    found = dict[str, list[str]]()
    for order in permutations("ABB"):
        process = begun(i.Race, "".join(order))
        found["".join(order)] = sorted(sent(process, *map(came, order)))
        process.answer("approve", Answer.YES)
    assert set(map(tuple, found.values())) == {("ignored", "ignored", "moved")}
    assert told() == []


def test_an_early_event_is_kept_for_the_step_that_is_to_wait_for_it() -> None:
    process = begun(i.Rounds)
    assert sent(process, signed("bad")) == ["parked"]  # before the first wait
    process.answer("noted", Answer.YES)
    run()
    assert process.open_steps == ["noted"]
    assert sent(process, signed("good"), signed("late")) == ["parked", "parked"]
    process.answer("noted", Answer.YES)
    run()

    assert process.open_steps == ["approve"]
    process.answer("approve", Answer.YES)
    verdicts = InboxEvent.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["moved", "moved", "ignored"]
    assert told() == []


def test_nobody_is_told_of_an_early_event_that_is_taken_or_ignored_later() -> None:
    process = begun(i.Rounds)
    sent(process, signed("good"))
    pass_time(PATIENCE)
    assert told() == []

    process.answer("noted", Answer.YES)
    run()
    assert process.open_steps == ["approve"]


def test_an_event_is_kept_for_a_wait_that_a_retry_begins_again() -> None:
    with failing(i.look, ValueError("not today"), times=1):
        process = begun(i.Together)
        assert process.status == "failed"
        assert sent(process, came("A")) == ["parked"]
        process.retry()
    run()
    assert process.status == "completed"
    assert process.result_of("mine") == came("A")


def test_a_graph_that_is_made_from_the_input_may_have_the_row() -> None:
    process = begun(i.Made)
    assert sent(process, came("A"), came("A")) == ["moved", "ignored"]
    process.answer("approve", Answer.YES)
    assert sent(process, came("B")) == ["ignored"]


# The word of a wait


def test_an_event_that_does_not_fit_the_guard_is_ignored_during_the_wait() -> None:
    process = begun(i.Guarded)
    assert sent(process, signed("bad"), signed("good")) == ["parked", "parked"]
    process.answer("begin", Answer.YES)
    run()

    verdicts = InboxEvent.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["ignored", "moved"]
    assert process.open_steps == ["approve"]
    assert sent(process, signed("bad")) == ["parked"]  # the wait is over
    assert told() == []


def test_an_event_that_comes_during_the_wait_and_does_not_fit_is_ignored_at_once() -> (
    None
):
    process = begun(i.Guarded)
    process.answer("begin", Answer.YES)
    assert sent(process, signed("bad"), signed("bad")) == ["ignored", "ignored"]
    assert sent(process, signed("good")) == ["moved"]


def test_an_event_that_does_not_fit_may_be_rejected_with_an_incident() -> None:
    process = begun(i.Strict)
    assert sent(process, signed("bad"), signed("good")) == ["rejected", "moved"]
    assert told() == ["OfferSigned is rejected in step signed"]


def test_a_wait_that_parks_keeps_the_event_though_the_flow_ignores_it_later() -> None:
    process = begun(i.Keeping)
    assert sent(process, signed("bad")) == ["parked"]
    assert sent(process, signed("good"), signed("bad")) == ["moved", "ignored"]
    process.answer("approve", Answer.YES)
    verdicts = InboxEvent.objects.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["ignored", "moved", "ignored"]
    assert told() == []


def test_of_two_open_waits_the_stricter_one_decides() -> None:
    process = begun(i.Both)
    assert sent(process, signed("odd")) == ["rejected"]
    assert sent(process, signed("good")) == ["moved"]
    assert sent(process, signed("odd"), signed("bad")) == ["ignored", "moved"]
    assert process.status == "completed"


def test_the_preview_tells_what_becomes_of_the_event() -> None:
    previews = [
        (i.Race, came("C"), "ignored"),
        (i.Loud, came("C"), "parked"),
        (i.Strict, signed("bad"), "rejected"),
        (i.Strict, signed("good"), "moved"),
        (i.Rounds, signed("good"), "parked"),
    ]
    found = []
    for definition, event, _ in previews:
        process = begun(definition, f"{next(numbers)}")
        kind, body = type(event).__name__, vars(event)
        found.append(preview_event(kind, body, process.instance))
    assert [one.outcome for one in found] == [outcome for _, _, outcome in previews]


def test_the_preview_tells_whether_a_process_that_has_ended_ignores_the_event() -> None:
    found = []
    for definition in (i.Race, i.Loud):
        process = begun(definition, f"{next(numbers)}")
        sent(process, came("B"))
        process.answer("approve", Answer.YES)
        late = preview_event("OfferCame", vars(came("A")), process.instance)
        found.append((process.status, late.outcome, preview_text(late, {})))

    assert found == [
        ("completed", "ignored", "The process has ended: it would be ignored."),
        ("completed", "ended", "The process has ended."),
    ]


def test_the_preview_tells_that_a_paused_process_keeps_the_event() -> None:
    process = begun(i.Strict)
    pause(process.id, request=asked())
    preview = preview_event("OfferSigned", vars(signed("bad")), process.instance)

    assert preview.outcome == "paused"
    assert sent(process, signed("bad")) == ["parked"]
    unpause(process.id, request=asked())
    run()
    assert told() == ["OfferSigned is rejected in step signed"]
