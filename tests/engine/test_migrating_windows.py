"""A map goes over to a version with another window. The invariants are asked after each test."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from orchestrator import Retry, registry, start_process
from orchestrator.definition import Workflow, each, start
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import migrate, pause, unpause
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import pass_time, registered
from tests.apps.versions.desk import now, only
from tests.services.doing import did
from tests.services.sizes import size

pytestmark = pytest.mark.django_db

NAME = "postman-round"
shut: set[int] = set()
"""The houses where nobody is at home."""


@dataclass(frozen=True)
class Street:
    houses: list[int]


def leave(houses: list[int]) -> Street:
    return Street(houses)


def ring(item: int) -> int:
    if item in shut:
        raise Retry(timedelta(hours=1), "nobody is at home")
    return item


def home(ring: list[int]) -> int:
    return len(ring)


def round_of(number: int, window: int | None) -> type[Workflow]:
    """Make a version."""

    class Round(Workflow):
        Input = Street
        name = NAME
        version = number
        every = each(leave, over="houses", do=ring, into=home, window=window)
        flow = (start(leave), every)

    return Round


NARROW, WITHOUT, WIDE, NARROWER = 1, 2, 3, 4


@pytest.fixture(scope="module", autouse=True)
def versions() -> Iterator[None]:
    """Let the running code have all of them."""
    windows = {NARROW: 2, WITHOUT: None, WIDE: 4, NARROWER: 1}
    with registered(*(round_of(*each) for each in windows.items())):
        yield


@pytest.fixture(autouse=True)
def everybody_is_out() -> Iterator[None]:
    shut.update(range(6))
    yield
    shut.clear()


def under_way(houses: int = 6, version: int = NARROW) -> ProcessInstance:
    """Return a round: its first houses were tried, and are again in an hour; the others wait outside the window."""
    definition = registry.find_definition(NAME, version)
    assert issubclass(definition, Workflow)
    with only(NAME, version):
        receipt = start_process(definition, Street(list(range(houses))))
        drain()
    process = ProcessInstance.objects.get(pk=receipt.process_id)
    assert tried(process) == [*range(4 if version == WIDE else 2)]
    return process


def tried(process: ProcessInstance) -> list[int | None]:
    rows = StepRun.objects.filter(instance=process, kind="item")
    found = rows.filter(started_at__isnull=False).order_by("item")
    return list(found.exclude(attempt=0).values_list("item", flat=True))


def ends(process: ProcessInstance) -> None:
    shut.clear()
    pass_time(hours=2)
    assert now(process).status == "completed"
    assert StepRun.objects.get(instance=process, node="home").result == 6


@pytest.mark.parametrize(
    ("version", "begun"), [(WITHOUT, 6), (WIDE, 4), (NARROWER, 2), (NARROW, 2)]
)
def test_the_other_versions_window_counts_at_once(version: int, begun: int) -> None:
    process = under_way()
    if version != NARROW:
        did(migrate, process, version, {})
    drain()
    assert tried(process) == list(range(begun))
    ends(process)


def test_in_a_narrower_window_none_begins_until_enough_have_ended() -> None:
    """Four have begun, and one at a time may run."""
    process = under_way(version=WIDE)
    did(migrate, process, NARROWER, {})
    for houses in ({0, 1}, {2}):
        shut.difference_update(houses)
        pass_time(minutes=61)
        assert tried(process) == [0, 1, 2, 3]
    shut.discard(3)
    pass_time(minutes=61)
    assert tried(process) == [0, 1, 2, 3, 4]
    ends(process)


def test_a_window_that_is_wide_again_is_filled_at_once() -> None:
    process = under_way(version=WIDE)
    did(migrate, process, NARROWER, {})
    did(migrate, process, WITHOUT, {})
    drain()
    assert tried(process) == [*range(6)]
    ends(process)


def test_an_element_that_ends_in_a_window_that_is_wide_again_is_followed() -> None:
    process = under_way(version=WIDE)
    did(migrate, process, NARROWER, {})
    did(migrate, process, WIDE, {})
    shut.discard(0)
    pass_time(minutes=61)
    assert tried(process) == [0, 1, 2, 3, 4]
    ends(process)


def test_what_its_window_holds_back_no_more_begins_when_it_goes_on() -> None:
    process = under_way()
    did(pause, process)
    did(migrate, process, WITHOUT, {})
    drain()
    assert tried(process) == [0, 1]

    did(unpause, process)
    drain()
    assert tried(process) == list(range(6))
    ends(process)


@pytest.mark.full_size("10,000 elements", seconds=120)
def test_all_that_its_window_holds_back_no_more_begin_together() -> None:
    houses = size(1_000, full=10_000)
    process = under_way(houses)
    did(migrate, process, WITHOUT, {})
    rows = StepRun.objects.filter(instance=process, kind="item")
    assert rows.filter(status="ready", wake_at__isnull=False).count() == houses - 2
