"""Games played beside each other, round by round, and their medians and ratios."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.game import BenchFailed, Figures, Game, play

MAIN = "per_second"


@dataclass(frozen=True)
class Ratio:
    """A figure of some games divided by that of another one in the same round."""

    label: str
    figure: str
    games: Sequence[str]
    of: str


@dataclass(frozen=True)
class Row:
    """The result of a game: the median of each figure, with the lowest and highest main figure."""

    name: str
    unit: str
    figures: Figures
    low: float
    high: float


@dataclass
class Measurement:
    """Games to compare, the ratios between them, and notes for the reader."""

    name: str
    games: Sequence[Game]
    ratios: Sequence[Ratio] = ()
    note: str = ""
    absent: Sequence[str] = ()
    """What could be compared and is not installed, in words."""
    played: dict[str, list[Figures]] = field(default_factory=dict)
    busy: float = field(default_factory=lambda: os.getloadavg()[0])
    """How many processes wanted a processor in the minute before: figures of a busy machine are void."""

    def run(self, rounds: int, say: Callable[[str], object]) -> list[Row]:
        """Play all games in each round, and return their medians.

        Raises:
            BenchFailed: a game did not end in time, or its result is wrong.
        """
        for number in range(1, rounds + 1):
            for game in self.games:
                say(f"round {number} of {rounds}: {game.name} ...")
                figures = play(game)
                if not figures.get(MAIN, 1):
                    raise BenchFailed(f"{game.name}: nothing was done")
                self.played.setdefault(game.name, []).append(figures)
                say(f"    {figures[MAIN]:,.0f} {game.unit}s a second")
        return self.rows()

    def rows(self) -> list[Row]:
        """Return the medians of the rounds so far."""
        return [self._row(game) for game in self.games]

    def _row(self, game: Game) -> Row:
        runs = self.played[game.name]
        figures = {name: _median(runs, name) for name in runs[0]}
        for ratio in self.ratios:
            if game.name in ratio.games:
                figures[ratio.label] = statistics.median(self._ratios(ratio, runs))
        main = [run[MAIN] for run in runs]
        return Row(game.name, game.unit, figures, min(main), max(main))

    def _ratios(self, ratio: Ratio, runs: list[Figures]) -> list[float]:
        others = self.played[ratio.of]
        return [
            run[ratio.figure] / other[ratio.figure]
            for run, other in zip(runs, others, strict=True)
        ]


def _median(runs: list[Figures], name: str) -> float:
    return statistics.median(run[name] for run in runs if name in run)
