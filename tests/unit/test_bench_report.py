"""What the benches say: medians of rounds, ratios within a round, and a table between the markers of a page."""

from pathlib import Path

import pytest

from bench import report
from bench.game import BenchFailed, Figures, Game, Size
from bench.graph import drawn
from bench.measurement import Measurement, Ratio


class Told(Game):
    """A game whose figures are known before."""

    def __init__(self, name: str, *figures: float) -> None:
        super().__init__(Size(1))
        self.name = name
        self.left = list(figures)

    def prepare(self) -> None:
        """Needs nothing."""

    def run(self) -> Figures:
        return {"per_second": self.left.pop(0)}

    def check(self) -> None:
        """Stores nothing."""


def test_a_ratio_is_the_median_of_those_within_a_round() -> None:
    ratio = Ratio("of ours", "per_second", "ours")
    games = [Told("ours", 100, 10, 100), Told("theirs", 50, 10, 10)]

    ours, theirs = Measurement("x", games, [ratio]).run(3, lambda line: None)

    assert (ours.figures["per_second"], ours.low, ours.high) == (100, 10, 100)
    assert theirs.figures["of ours"] == 0.5


def test_rounds_are_interleaved() -> None:
    said: list[str] = []
    games = [Told("a", 1, 1), Told("b", 1, 1)]

    Measurement("x", games).run(2, said.append)

    played = [line.split(": ")[1] for line in said if line.startswith("round")]
    assert played == ["a ...", "b ...", "a ...", "b ..."]


def test_a_game_that_does_not_end_says_so() -> None:
    game = Told("ours")
    game.size = Size(1, patience=0)

    with pytest.raises(BenchFailed, match="ours: the last did not come within 0 s"):
        game.wait(lambda: False, "the last", pause=0)


def test_a_table_replaces_what_stood_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- bench x -->\nold\n<!-- end of bench x -->\nb\n")

    report.write("x", "new", page)

    text = "a\n<!-- bench x -->\n\nnew\n\n<!-- end of bench x -->\nb\n"
    assert page.read_text() == text
    with pytest.raises(BenchFailed, match="add <!-- bench y -->"):
        report.write("y", "new", page)


@pytest.mark.parametrize(("steps", "edges"), [(50, 120), (1000, 4000), (1000, 17_000)])
def test_a_graph_has_as_many_edges_as_it_says(steps: int, edges: int) -> None:
    needed = drawn(steps, edges).needed

    assert len(needed) == steps
    assert sum(len(set(found)) for found in needed) == edges
