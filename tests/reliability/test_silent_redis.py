"""Redis falls silent: connections are accepted and stay open, and nothing answers. Workers look for work themselves."""

import time
from functools import partial

import pytest

from orchestrator import start_process
from orchestrator.configuration.conf import conf
from orchestrator.models import StepRun
from tests.apps.watched.fixtures import Begin, all_done, begin, has_begun, said, watched
from tests.apps.watched.processes import Watched
from tests.apps.watched.steps import Work, open_gate
from tests.reliability.silent_line import SilentLine, Way
from tests.services.patience import bar, wait_for
from tests.services.sizes import first_of

__all__ = ["begin", "watched"]


RECOVERY = conf().LEASE_SECONDS + 3


@pytest.mark.parametrize("way", first_of(["swallowed", "dropped"]))
def test_work_goes_on_while_redis_is_silent(
    line_to_redis: SilentLine, begin: Begin, way: Way
) -> None:
    """Of two workers one is in a step, and one waits for a bell; then both wait for bells that nobody hears."""
    workers = begin(2)
    log = workers.supervisor.log
    logged = len(log.read_text())
    start_process(Watched, Work("in hand", "wait 1"))
    wait_for(partial(has_begun, "in hand"), 10, lambda: said(workers))
    line_to_redis.fall_silent_for_all(way)
    open_gate(1)
    wait_for(all_done, RECOVERY, lambda: said(workers))
    start_process(Watched, Work("new", "sleep"))
    wait_for(all_done, RECOVERY, lambda: said(workers))

    before = workers.pids
    line_to_redis.speak()
    start_process(Watched, Work("afterwards", "sleep"))
    wait_for(all_done, RECOVERY, lambda: said(workers))
    assert workers.pids == before
    assert "the database does not answer" not in log.read_text()[logged:]
    assert set(StepRun.objects.values_list("attempt", flat=True)) == {1}


def test_a_silent_redis_delays_no_stop(line_to_redis: SilentLine, begin: Begin) -> None:
    workers = begin(2)
    start_process(Watched, Work("long", "sleep", 600))
    wait_for(partial(has_begun, "long"), 10, lambda: said(workers))
    line_to_redis.fall_silent_for_all()
    since = time.monotonic()

    assert workers.stop() == 0
    assert time.monotonic() - since < bar(5)
