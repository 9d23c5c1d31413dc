"""Processes that a step has started end with the worker that ran it, however that ends."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.models import ProcessInstance, Status
from tests.apps.interrupted_undo.crew import sailors
from tests.apps.interrupted_undo.fixtures import harbour
from tests.apps.interrupted_undo.processes import Endless, Overrun
from tests.services.patience import wait_for
from tests.services.sizes import first_of
from tests.services.workers import Workers

__all__ = ["harbour"]

pytestmark = [pytest.mark.usefixtures("harbour"), pytest.mark.once]


@pytest.fixture
def crew(hands: Workers) -> Iterator[Workers]:
    """Return the workers, running; nobody whom their steps have started is left behind, whatever the test finds."""
    # The tests may be run by nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hands.start()
    signal.signal(signal.SIGHUP, before)
    yield hands
    for pid in sailors():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def aboard(definition: type[Workflow]) -> int:
    """Start a process whose step starts another process; return that one's id."""
    start_process(definition, definition.Input())
    wait_for(lambda: len(sailors()) == 1, 20)
    [pid] = sailors()
    return pid


def gone(pid: int) -> bool:
    """Tell whether a process has ended, whoever has still to be told of it."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_what_a_step_started_ends_when_it_overruns_its_time(crew: Workers) -> None:
    sailor = aboard(Overrun)
    failed = ProcessInstance.objects.filter(status=Status.FAILED)
    wait_for(failed.exists, 20)

    wait_for(lambda: gone(sailor), 5)


def test_what_a_step_started_ends_when_its_worker_is_killed(crew: Workers) -> None:
    sailor = aboard(Endless)
    os.kill(psutil.Process(sailor).ppid(), signal.SIGKILL)

    wait_for(lambda: gone(sailor), 5)


@pytest.mark.parametrize(
    "number", first_of([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
)
def test_what_a_step_started_ends_with_the_workers(crew: Workers, number: int) -> None:
    sailor = aboard(Endless)
    os.kill(crew.supervisor.pid, number)
    wait_for(lambda: not crew.supervisor.alive, 5)

    wait_for(lambda: gone(sailor), 5)
    assert crew.stop() == 0
