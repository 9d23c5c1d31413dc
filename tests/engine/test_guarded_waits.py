"""An event for which several workflows wait with guards: one takes it, and the guards of the others do not hold."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from orchestrator import send_event
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event, Workflow, stored, then, wait
from orchestrator.engine.change import offering
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import found, pass_time, registered, run, started
from tests.services.pruned import prune

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS + 1)


class PartArrived(Event):
    order: str
    part: str


class DoorOpened(Event):
    order: str


@dataclass(frozen=True)
class Order:
    order: str


@dataclass(frozen=True)
class Part(Order):
    part: str


def is_gear(event: PartArrived) -> bool:
    if event.part == "unlabelled":
        raise ValueError("it may be anything")
    return event.part == "gear"


class Frames(Workflow):
    """Waits for the frame of an order."""

    Input, correlation = Order, "order"
    flow = (wait(PartArrived, "frame", part="frame"),)


class Wheels(Workflow):
    """Waits for the part that the order names."""

    Input, correlation = Part, "order"
    flow = (wait(PartArrived, "wheel", part=stored("part")),)


class Gears(Workflow):
    """Waits for the gear of an order, once the door is open."""

    Input, correlation = Order, "order"
    flow = (then(wait(DoorOpened, "door"), wait(PartArrived, "gear", is_gear)),)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(Frames, Wheels, Gears):
        yield


def arrive(*parts: str) -> None:
    """Send one event for each part; they are claimed together."""
    for number, part in enumerate(parts):
        of_part = InboxEvent.objects.filter(event_id__startswith=part).count()
        send_event(PartArrived("1", part), id=f"{part} {of_part} {number}")
    run()


def verdicts(part: str) -> dict[str, str]:
    """Return the verdict of each definition about the arrival of a part."""
    rows = InboxEvent.objects.filter(event_id__startswith=part)
    return dict(rows.order_by("pk").values_list("target", "verdict"))


def told() -> list[str]:
    return sorted(Incident.objects.open().values_list("message", flat=True))


def begin() -> None:
    started(Frames, Order("1"))
    started(Wheels, Part("1", "wheel"))
    started(Gears, Order("1"))


def test_of_three_guarded_waits_one_takes_the_event_and_nobody_is_told_of_the_others() -> (
    None
):
    begin()
    arrive("frame")
    pass_time(PATIENCE)

    assert verdicts("frame") == {
        "frames": "moved",
        "gears": "parked",
        "wheels": "parked",
    }
    assert told() == []


def test_nobody_is_told_of_them_when_their_processes_end() -> None:
    begin()
    arrive("frame")
    send_event(DoorOpened("1"), id="door")
    arrive("wheel", "gear")
    pass_time(PATIENCE)

    assert not ProcessInstance.objects.live().exists()
    assert [found(one).status for one in (Frames, Wheels, Gears)] == ["completed"] * 3
    assert verdicts("frame") == {
        "frames": "moved",
        "gears": "ignored",
        "wheels": "ignored",
    }
    assert verdicts("wheel")["frames"] == verdicts("gear")["frames"] == "ignored"
    assert told() == []


def test_nobody_is_told_of_them_after_the_process_that_took_the_event_was_removed() -> (
    None
):
    """Not when the event is offered once more, either."""
    begin()
    arrive("frame")
    pass_time(days=3)
    prune("--keep", "2")
    assert verdicts("frame") == {"gears": "parked", "wheels": "parked"}
    send_event(DoorOpened("1"), id="door")
    pass_time(PATIENCE)
    pass_time(PATIENCE)

    assert verdicts("frame") == {"gears": "parked", "wheels": "parked"}
    assert told() == []


def test_all_three_may_be_claimed_together() -> None:
    begin()
    send_event(DoorOpened("1"), id="door")
    arrive("gear", "wheel", "frame")
    pass_time(PATIENCE)

    assert not ProcessInstance.objects.live().exists()
    assert not InboxEvent.objects.filter(verdict="parked").exists()
    assert told() == []


def test_an_event_that_none_of_them_takes_is_told_once_each() -> None:
    begin()
    arrive("saddle")
    pass_time(PATIENCE)

    assert told() == [
        "PartArrived is not expected in step door",
        "PartArrived is not expected in step frame",
        "PartArrived is not expected in step wheel",
    ]


def test_what_was_told_is_resolved_when_one_of_them_takes_the_event() -> None:
    started(Frames, Order("1"))
    started(Gears, Order("1"))
    arrive("gear")
    pass_time(PATIENCE)
    assert len(told()) == 2

    send_event(DoorOpened("1"), id="door")
    pass_time(days=1)
    assert found(Gears).status == "completed"
    assert verdicts("gear")["frames"] == "parked"
    assert told() == []


def test_an_event_that_fits_is_told_where_its_process_has_ended_though_another_takes_it() -> (
    None
):
    started(Frames, Order("1"))
    started(Wheels, Part("1", "frame"))
    arrive("frame")
    started(Wheels, Part("1", "frame"))
    arrive("frame")

    assert found(Wheels, "1").status == "completed"
    assert told() == ["PartArrived came after the process had ended"]


def test_an_event_that_fits_a_wait_to_come_is_told_though_another_takes_it() -> None:
    started(Gears, Order("1"))
    started(Wheels, Part("1", "gear"))
    arrive("gear")
    pass_time(PATIENCE)

    assert found(Wheels).status == "completed"
    assert told() == ["PartArrived is not expected in step door"]


def test_an_event_is_told_where_a_condition_raises_though_another_takes_it() -> None:
    """It may have been for the process that has ended."""
    started(Gears, Order("1")).cancel()
    started(Wheels, Part("1", "unlabelled"))
    arrive("unlabelled")

    assert found(Wheels).status == "completed"
    assert told() == ["PartArrived came after the process had ended"]


def test_an_event_that_comes_twice_after_all_have_ended_is_told_once() -> None:
    begin()
    send_event(DoorOpened("1"), id="door")
    arrive("gear", "wheel", "frame")
    arrive("frame")
    pass_time(PATIENCE)

    assert told() == ["PartArrived came after the process had ended"]
    unexpected = InboxEvent.objects.filter(verdict="unexpected")
    assert [row.target for row in unexpected] == [
        "frames"
    ]  # it fits a wait of this one


def test_an_event_for_one_that_has_ended_waits_for_the_decision_of_the_others() -> None:
    started(Frames, Order("1"))
    arrive("frame")
    started(Gears, Order("1"))
    arrive("gear")
    pass_time(seconds=2)
    assert verdicts("gear")["frames"] == "ignored"  # the other process keeps it

    send_event(DoorOpened("1"), id="door")
    run()
    pass_time(PATIENCE)
    assert verdicts("gear")["gears"] == "moved"
    assert "came after" not in "".join(told())


def test_an_event_for_one_that_has_ended_waits_for_a_process_of_another() -> None:
    started(Frames, Order("1"))
    arrive("frame", "gear")
    pass_time(PATIENCE)
    assert told() == [
        "no process takes PartArrived: there is no gears with the key '1'",
        "no process takes PartArrived: there is no wheels with the key '1'",
    ]

    started(Gears, Order("1"))
    send_event(DoorOpened("1"), id="door")
    pass_time(days=1)
    assert verdicts("gear")["gears"] == "moved"
    assert verdicts("gear")["frames"] == "ignored"
    assert told() == []


def test_many_events_that_wait_for_others_hold_up_none_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offering, "ENDED", 8)
    started(Frames, Order("1"))
    arrive(*["saddle"] * 9)
    pass_time(PATIENCE)
    started(Wheels, Part("1", "wheel"))
    arrive("wheel")
    pass_time(PATIENCE)
    assert verdicts("wheel")["frames"] == "parked"

    arrive("frame")
    pass_time(PATIENCE)
    assert verdicts("saddle")["frames"] == "parked"  # gears may still come
    assert verdicts("wheel")["frames"] == "ignored"


@pytest.mark.parametrize("seed", range(12))
def test_in_any_order_nobody_is_told_of_events_that_were_taken(seed: int) -> None:
    acts: list[Callable[[], object]] = [
        lambda: started(Frames, Order("1")),
        lambda: started(Wheels, Part("1", "wheel")),
        lambda: started(Gears, Order("1")),
        lambda: send_event(DoorOpened("1"), id="door"),
        lambda: arrive("frame"),
        lambda: arrive("wheel", "gear"),
        lambda: pass_time(PATIENCE),
        lambda: pass_time(PATIENCE),
    ]
    random.Random(seed).shuffle(acts)
    for act in acts:
        act()
    pass_time(days=3)

    assert not ProcessInstance.objects.live().exists()
    assert told() == []
