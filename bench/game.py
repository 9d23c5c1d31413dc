"""A game: one thing that is measured, and what came out of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.exceptions import ProcessionError

Figures = dict[str, float]
"""What one run measured, by name; the unit is part of the name, and `per_second` is what a run is about."""


class BenchFailed(ProcessionError):
    """A measurement came to no figure that could be believed."""


@dataclass(frozen=True)
class Size:
    """How large a measurement is.

    Args:
        count: how many processes, events or jobs; each game says which.
        processes: how many workers, of the engine and of whatever it is compared with.
        patience: seconds within which each part of a run has to be done.
    """

    count: int
    processes: int = 2
    patience: float = 600


class Game(ABC):
    """One thing that is measured. It is played by preparing its work, running it and checking what became of it."""

    name: str
    unit = "step"

    def __init__(self, size: Size) -> None:
        self.size = size

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Has what it needs ready and warm while the block lasts, and removes what was written."""
        yield

    @abstractmethod
    def prepare(self) -> None:
        """Puts the work where nobody takes it yet."""

    @abstractmethod
    def run(self) -> Figures:
        """Has the work done, and measures it."""

    @abstractmethod
    def check(self) -> None:
        """Looks at what was stored.

        Raises:
            BenchFailed: it is not what had to come of the work.
        """

    def wait(self, over: Callable[[], object], what: str, pause: float = 0.05) -> None:
        """Waits until something is true.

        Raises:
            BenchFailed: it was not within the patience.
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
    """Plays a game once.

    Raises:
        BenchFailed: it did not end in time, or what it did is wrong.
    """
    with game.at_hand():
        game.prepare()
        figures = game.run()
        game.check()
    return figures
