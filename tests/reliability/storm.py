"""Workers who are killed at fixed intervals while a test runs, and other harm that is done so."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import connection

from orchestrator.engine.operations import ActionRequest, retry
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Checkpoint, Incident, ProcessInstance, Status
from tests.services.crews import unfinished
from tests.services.patience import wait_for
from tests.services.workers import Workers

LOOK_SECONDS = 0.03
"""Between two looks whether enough was done since the last harm."""

Until = Callable[[Callable[[], bool], float], None]
"""Waits for what comes within so many seconds; says how far everything is when it does not."""


class Storm:
    """Kills a random worker, and does other harm, in threads of its own, at fixed intervals, until it is over.

    Args:
        workers: who is killed; they are started when it begins.
        seconds: between one kill and the next.
        seed: of the dice.
        steps: as `every` says, and `made`.
    """

    def __init__(
        self,
        workers: Workers,
        seconds: float,
        seed: int,
        steps: int,
        made: Callable[[], int] = Checkpoint.objects.count,
    ) -> None:
        self.workers, self.over = workers, threading.Event()
        self.counts: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        kill = partial(kill_one, workers, random.Random(seed))
        self.every(seconds, "kills", kill, steps, made)

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

        def repeat() -> None:
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

        self.threads.append(threading.Thread(target=repeat))

    @contextmanager
    def raging(self, kills: int = 1) -> Iterator[Until]:
        """Start the workers and do the harm as long as the block runs, which gets a function that waits.

        What harms must not fail itself, and workers must have been killed so many times at least.
        """
        self.workers.start()
        for thread in self.threads:
            thread.start()
        try:
            said = partial(unfinished, self.workers)
            yield lambda ready, seconds: wait_for(ready, seconds, said)
        finally:
            self.over.set()
            for thread in self.threads:
                thread.join()
        assert self.failures == []
        assert self.counts["kills"] >= kills


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


def all_have(person: User, status: Status, number: int, **which: object) -> bool:
    """Whether so many stand so; a step whose workers were killed too often is for people, who have it tried again."""
    press_retry(person)
    return ProcessInstance.objects.filter(status=status, **which).count() == number
