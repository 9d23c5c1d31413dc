"""Redis or the database fall silent while calls are in flight: they go on, and none of them is made again."""

import pytest

from orchestrator.models import StepRun
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.desk import all_ended, started, until
from tests.apps.waiting_calls.fixtures import Begin, begin, forgotten, waiting_calls
from tests.apps.waiting_calls.ways import entries, open_gate
from tests.reliability.silent_line import SilentLine, Way
from tests.services.database import NEEDS_SERVER
from tests.services.sizes import first_of, size

__all__ = ["begin", "forgotten", "waiting_calls"]


WAYS: tuple[Way, ...] = ("swallowed", "dropped")


@pytest.mark.parametrize("way", first_of(WAYS))
def test_what_is_new_is_called_while_redis_is_silent_for_who_listens(
    line_to_redis: SilentLine, begin: Begin, way: Way
) -> None:
    """Who only listens is told nothing of it."""
    workers = begin()
    started(p.OneCall, "in flight", "gate all")
    until(lambda: len(entries()) == 1, workers)
    line_to_redis.fall_silent_for_all(way)
    open_gate("all")
    until(all_ended, workers)
    caller = workers.caller
    started(p.Mixed, "new")
    until(all_ended, workers)
    line_to_redis.speak()
    started(p.Mixed, "afterwards")
    until(all_ended, workers)

    assert workers.caller == caller
    assert len(entries()) == 3
    assert set(StepRun.objects.values_list("attempt", flat=True)) == {1}


@NEEDS_SERVER
@pytest.mark.parametrize("way", first_of(WAYS))
def test_what_calls_have_given_is_kept_while_the_database_is_silent(
    line: SilentLine, begin: Begin, way: Way
) -> None:
    number = size(10, full=100)
    workers = begin()
    for index in range(number):
        started(p.OneCall, f"call-{index}", "gate all")
    started(p.InThread, "thread", "gate all")
    until(lambda: len(entries()) == number + 1, workers)
    line.fall_silent(way)
    open_gate("all")
    until(lambda: len(entries("end")) == number + 1, workers)
    until(all_ended, workers)

    assert len(entries()) == number + 1
    assert set(StepRun.objects.values_list("attempt", flat=True)) == {1}
