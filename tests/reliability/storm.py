"""Harm that is done at fixed intervals while a test runs."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import connection

from orchestrator.engine.operations import ActionRequest, retry
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Checkpoint, Incident
from tests.services.workers import Workers

LOOK_SECONDS = 0.03
"""Between two looks whether enough was done since the last harm."""


class Storm:
    """Does harm in threads of its own, at fixed intervals, until it is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.counts: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def every(
        self,
        seconds: float,
        name: str,
        act: Callable[[], object],
        steps: int = 0,
        made: Callable[[], int] = Checkpoint.objects.count,
    ) -> None:
        """Repeat an act in a thread.

        Args:
            seconds: between one and the next.
            name: what it is counted as.
            act: the harm; it says False when there was nobody to harm, and is then tried again soon, and not counted.
            steps: how many checkpoints must have been added since the last time, and before the first, which waits for
                nothing else: so a crowded machine, which gets less done between two acts, is harmed no more often for
                as much work, and a fast one is harmed before it is done.
            made: what is counted instead of checkpoints, where those are too many to be counted again and again.
        """
        self.threads.append(
            threading.Thread(
                target=self._repeat, args=(seconds, name, act, steps, made)
            )
        )

    def _repeat(
        self,
        seconds: float,
        name: str,
        act: Callable[[], object],
        steps: int,
        made: Callable[[], int],
    ) -> None:
        wanted, pause = steps, LOOK_SECONDS if steps else seconds
        try:
            while not self.over.wait(pause):
                so_far = made() if steps else 0
                pause = LOOK_SECONDS
                if so_far >= wanted and act() is not False:
                    wanted, pause = so_far + steps, seconds
                    self.counts[name] += 1
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.failures.append(error)
        finally:
            connection.close()

    def kills(self, workers: Workers, seconds: float, steps: int, seed: int) -> None:
        """Kill a random worker at intervals, as `every` says."""
        dice = random.Random(seed)
        self.every(seconds, "kills", lambda: kill_one(workers, dice), steps=steps)

    @contextmanager
    def raging(self) -> Iterator[None]:
        """Let the harm be done as long as the block runs; what harms must not fail itself."""
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in self.threads:
                thread.join()
        assert self.failures == []


def kill_one(workers: Workers, dice: random.Random) -> bool:
    """End a random worker by SIGKILL; return whether there was one."""
    pids = workers.pids
    with suppress(ProcessLookupError):
        if pids:
            os.kill(dice.choice(pids), signal.SIGKILL)
            return True
    return False


def press_retry(person: User) -> None:
    """Do what people do about work that has lost its worker in each of its attempts; about nothing else."""
    lost = Incident.objects.open().filter(message__contains="the worker died")
    for incident in lost.exclude(instance=None):
        request = ActionRequest(person, uuid4(), "the storm has killed its worker")
        with suppress(OperationRefused):
            retry(incident.instance_id, request=request)
