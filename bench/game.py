"""A game: one thing to measure, and its figures."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.exceptions import ProcessionError

Figures = dict[str, float]
"""The figures of one run by name, with the unit in the name; `per_second` is the main one."""


class BenchFailed(ProcessionError):
    """A measurement came to no figure that could be believed."""


@dataclass(frozen=True)
class Size:
    """The size of a measurement.

    Args:
        count: how many processes, events or jobs; each game says which.
        processes: how many workers, of the engine and of whatever it is compared with.
        patience: seconds within which each part of a run has to be done.
    """

    count: int
    processes: int = 2
    patience: float = 600


class Game(ABC):
    """One thing to measure. A run prepares its work, has it done and checks the result."""

    name: str
    unit = "step"

    def __init__(self, size: Size) -> None:
        self.size = size

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Set up and warm up the game for the block, and remove its rows afterwards."""
        yield

    @abstractmethod
    def prepare(self) -> None:
        """Store the work where no worker takes it yet."""

    @abstractmethod
    def run(self) -> Figures:
        """Have the work done, and return the figures."""

    @abstractmethod
    def check(self) -> None:
        """Check the stored result.

        Raises:
            BenchFailed: it differs from what the work had to store.
        """

    def wait(self, over: Callable[[], object], what: str, pause: float = 0.05) -> None:
        """Wait until a condition holds.

        Raises:
            BenchFailed: it did not hold within the patience.
        """
        until = time.monotonic() + self.size.patience
        while not over():
            if time.monotonic() > until:
                raise BenchFailed(
                    f"{self.name}: {what} did not come within {self.size.patience:g} s. "
                    "Try a smaller --count, or more --patience."
                )
            time.sleep(pause)


def play(game: Game) -> Figures:
    """Play a game once.

    Raises:
        BenchFailed: it did not end in time, or its result is wrong.
    """
    with game.at_hand():
        game.prepare()
        figures = game.run()
        game.check()
    return figures
