"""PostgreSQL's connections fall silent: packets are neither answered nor refused, and nobody is told.

Workers and their supervisor go on within a lease and three seconds, and a stop never waits for the database.
"""

import os
import signal
import time
from functools import partial

import pytest

from orchestrator import start_process
from orchestrator.configuration.conf import conf
from orchestrator.models import StepRun
from tests.apps.watched.fixtures import Begin, all_done, begin, has_begun, said, watched
from tests.apps.watched.processes import Watched, WatchedInside
from tests.apps.watched.steps import Work, open_gate
from tests.reliability.silent_line import SilentLine, Way
from tests.services.database import NEEDS_SERVER
from tests.services.patience import bar, quickest, wait_for
from tests.services.sizes import first_of
from tests.services.workers import Workers

__all__ = ["begin", "watched"]

pytestmark = NEEDS_SERVER  # SQLite is in this process: there is no line to fall silent

RECOVERY = conf().LEASE_SECONDS + 3


class Silence:
    """Lets the line fall silent while workers are at three or four things, and waits until all are done after all."""

    def __init__(self, line: SilentLine, way: Way, workers: Workers) -> None:
        self.line, self.way, self.workers = line, way, workers
        self.times = 0

    def __call__(self) -> None:
        """One waits for work, one is in a step, one in a transaction; where packets are lost, one in a long query."""
        self.times += 1
        wait = f"wait {self.times}"
        # Where what is sent is only swallowed, the server says, rightly, that it is at the query.
        query = [(Watched, "ask")] * (self.way == "dropped")
        for workflow, how in [(Watched, wait), (WatchedInside, wait), *query]:
            name = f"{workflow.__name__} {how} {self.times}"
            start_process(workflow, Work(name, how, 280))
            wait_for(partial(has_begun, name), 10, self.said)
        self.line.fall_silent(self.way)
        start_process(Watched, Work(f"new {self.times}", "sleep"))
        open_gate(self.times)
        wait_for(all_done, RECOVERY, self.said)

    def said(self) -> str:
        return said(self.workers)


@pytest.mark.parametrize("way", first_of(["dropped", "swallowed"]))
def test_workers_whose_connections_have_fallen_silent_go_on(
    line: SilentLine, begin: Begin, way: Way
) -> None:
    silence = Silence(line, way, begin(4))

    most = bar(RECOVERY)
    assert quickest(silence, most) < most
    assert set(StepRun.objects.values_list("attempt", flat=True)) == {1}


def test_a_silent_database_delays_no_stop(line: SilentLine, begin: Begin) -> None:
    workers = begin(2)
    start_process(Watched, Work("long", "sleep", 600))
    wait_for(partial(has_begun, "long"), 10, lambda: said(workers))
    line.fall_silent_for_all()
    wait_for(partial(unanswered, workers), 10, lambda: said(workers))
    since = time.monotonic()

    assert workers.stop() == 0
    assert time.monotonic() - since < bar(5)


def test_the_supervisor_kills_and_replaces_workers_while_the_database_is_silent(
    line: SilentLine, begin: Begin
) -> None:
    workers = begin(2)
    line.fall_silent_for_all()
    wait_for(partial(unanswered, workers), 10, lambda: said(workers))
    before = workers.pids
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    def replaced() -> bool:
        found = workers.pids
        return len(found) == len(before) and not set(found) & set(before)

    wait_for(replaced, 5, lambda: said(workers))


def unanswered(workers: Workers) -> bool:
    """Tell whether the supervisor has noticed that the database is silent."""
    return "the database does not answer" in said(workers)
