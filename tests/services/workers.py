"""A worker supervisor with its workers, as processes of their own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from orchestrator.models import Worker
from orchestrator.workers import caller, database_process, notifier, pruner, take_over
from tests.services.patience import wait_for
from tests.services.program import Program, management_command


class Workers:
    """`manage.py work` with its children on the test database."""

    def __init__(self, processes: int = 2) -> None:
        self.processes = processes
        self.supervisor: Program = management_command(
            "work", "--processes", str(processes)
        )

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that live now, without the supervisor's."""
        found = self._unnamed()
        while len(found) > self.processes:  # one beside them has not said its name yet
            found = self._unnamed()
        return found

    def _unnamed(self) -> list[int]:
        programs = (database_process, take_over, caller, pruner, notifier)
        beside = [program.NAME for program in programs]
        return [pid for pid, name in self._children() if name not in beside]

    def _children(self) -> Iterator[tuple[int, str]]:
        """Yield the process ids and names of the supervisor's children that live now."""
        if self.supervisor.alive:
            for child in psutil.Process(self.supervisor.pid).children():
                with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                    yield child.pid, child.name()

    @property
    def database_process(self) -> int | None:
        """Process id of the one that asks the database for the supervisor; None while it is replaced."""
        return self._beside(database_process.NAME)

    @property
    def taking_over_process(self) -> int | None:
        """Process id of the one that takes over what busy workers hold; None while it is replaced."""
        return self._beside(take_over.NAME)

    @property
    def caller(self) -> int | None:
        """Process id of the one that keeps calls in flight; None as long as nothing has had to wait outside."""
        return self._beside(caller.NAME)

    @property
    def notifier(self) -> int | None:
        """Process id of the one that tells people; None while it is replaced, or nobody is to be told."""
        return self._beside(notifier.NAME)

    def _beside(self, name: str) -> int | None:
        return next((pid for pid, told in self._children() if told == name), None)

    def start(self) -> None:
        self.supervisor.start()

    def stop(self) -> int | None:
        """End the supervisor as `up` does; return its exit code."""
        return self.supervisor.stop()

    def kill(self) -> None:
        """End supervisor and workers by SIGKILL."""
        self.supervisor.kill()


@contextmanager
def hired() -> Iterator[Callable[[int], Workers]]:
    """Give a function that starts a supervisor and waits for so many workers; all end with the block."""
    started: list[Workers] = []

    def hire(processes: int) -> Workers:
        workers = Workers(processes)
        started.append(workers)
        workers.start()
        own = Worker.objects.filter
        wait_for(
            lambda: own(pid__in=workers.pids).count() == processes,
            20,
            lambda: said(workers),
        )
        return workers

    yield hire
    for workers in started:
        workers.stop()


def said(workers: Workers) -> str:
    """Return the end of what the workers have logged."""
    return workers.supervisor.log.read_text()[-3000:]
