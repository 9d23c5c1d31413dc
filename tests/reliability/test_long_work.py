"""Long work does not queue behind other long work: what a busy worker has not begun, another one begins at once."""

import os
import signal
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import transaction

from orchestrator import start_process
from orchestrator.models import StepKind, StepRun
from tests.apps.long_work.fixtures import Begin, begin, long_work, said, written
from tests.apps.long_work.processes import (
    Errands,
    ErrandWanted,
    LongLayer,
    LongMap,
    LongStep,
)
from tests.apps.long_work.ways import entries
from tests.services.patience import bar, wait_for
from tests.services.sizes import first_of, size

__all__ = ["begin", "long_work", "written"]


NAMES = tuple("abcdef")[: size(4, full=6)]
"""As many as one worker claims together; or more."""
Send = Callable[[str], None]


def send_steps(how: str) -> None:
    with transaction.atomic():  # all are due at the same moment
        for name in NAMES:
            start_process(LongStep, LongStep.Input(name, how))


def send_map(how: str) -> None:
    start_process(LongMap, LongMap.Input(dict.fromkeys(NAMES, how)))


def send_commands(how: str) -> None:
    for name in NAMES:
        start_process(Errands, ErrandWanted(name, how))


def ended() -> int:
    return len(entries("end"))


@pytest.mark.full_size("six of 5 s, and of 4 s", seconds=150)
@pytest.mark.parametrize(
    ("send", "way", "seconds", "most"),
    [
        (send_steps, "hold", 5, 16.5),
        (send_map, "sleep", 4, 13.5),
        (send_commands, "hold", 4, 13.5),
    ],
)
def test_pieces_of_long_work_are_shared_by_two_workers(
    begin: Begin, send: Send, way: str, seconds: int, most: float
) -> None:
    """Also where the work holds its worker's interpreter, which can do nothing then."""
    each = size(1, full=seconds)
    workers = begin(2)
    send(f"{way} {each}")
    wait_for(lambda: ended() == len(NAMES), most, lambda: said(workers))

    assert sorted(entry.name for entry in entries()) == sorted(NAMES)
    assert len({entry.worker for entry in entries()}) == 2
    assert entries("end")[-1].at - entries()[0].at < bar(most)


def test_long_steps_after_quick_ones_are_shared_by_two_workers(begin: Begin) -> None:
    """Who has run the quick ones goes on with what follows; what that worker cannot begin, the other one does."""
    quick = tuple(f"quick{number}" for number in range(4))
    workers = begin(2)
    start_process(LongLayer, LongLayer.Input(quick, NAMES, "sleep 2"))
    wait_for(lambda: ended() == len(quick + NAMES), 60, lambda: said(workers))

    long = [entry for entry in entries() if entry.name in NAMES]
    assert sorted(entry.name for entry in long) == sorted(NAMES)
    assert len({entry.worker for entry in long}) == 2
    assert entries("end")[-1].at - long[0].at < bar(2 * len(NAMES) - 2)


# Results that are held


QUICK = {f"quick{number}": "at once" for number in range(12)}
LONG = "the-long-one"
"""PostgreSQL puts the keys of an object in the order of their lengths."""


def called() -> dict[str, int]:
    """Return how often each element was called."""
    return Counter(entry.name for entry in entries())


def stored() -> int:
    """Return how many of the quick elements' results are stored."""
    return StepRun.objects.filter(kind=StepKind.ITEM).exclude(checksum="").count()


@pytest.mark.parametrize("way", first_of(["hold", "sleep"]))
def test_quick_results_are_stored_while_the_next_element_takes_its_time(
    begin: Begin, way: str
) -> None:
    workers = begin(1)
    start_process(LongMap, LongMap.Input({**QUICK, LONG: f"{way} 600"}))
    wait_for(lambda: called().get(LONG) == 1, 10, lambda: said(workers))
    # Others' load makes it slower; the element itself would go on for a minute.
    wait_for(lambda: stored() == len(QUICK), 4, lambda: f"{stored()} {said(workers)}")

    [pid] = workers.pids
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: called()[LONG] == 2, 10, lambda: said(workers))
    assert called() == {**dict.fromkeys(QUICK, 1), LONG: 2}


@pytest.mark.parametrize("number", first_of([signal.SIGSTOP, signal.SIGKILL]))
def test_quick_results_are_stored_though_the_process_that_does_it_stands_still_or_dies(
    begin: Begin, number: int
) -> None:
    workers = begin(1)
    wait_for(lambda: workers.taking_over_process is not None, 5, lambda: said(workers))
    before = workers.taking_over_process
    assert before is not None
    os.kill(before, number)
    start_process(LongMap, LongMap.Input({**QUICK, LONG: "hold 600"}))

    wait_for(lambda: called().get(LONG) == 1, 10, lambda: said(workers))
    wait_for(lambda: stored() == len(QUICK), 4, lambda: f"{stored()} {said(workers)}")
    assert workers.taking_over_process != before


def test_quick_results_of_a_killed_worker_are_stored_by_others(begin: Begin) -> None:
    workers = begin(1)
    start_process(LongMap, LongMap.Input({**QUICK, LONG: "kill"}))
    wait_for(lambda: called()[LONG] >= 1, 10, lambda: said(workers))
    wait_for(lambda: ended() >= len(QUICK) + 1, 20, lambda: said(workers))

    assert called() == {**dict.fromkeys(QUICK, 1), LONG: 2}
