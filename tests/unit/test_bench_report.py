"""What the benches say: medians of rounds, ratios within a round, and a table between the markers of a page."""

from math import inf
from pathlib import Path
from uuid import uuid4

import pytest

from bench import report
from bench.fetching import BESIDE, LATE, QUICK, FetchingPage
from bench.game import BenchFailed, Figures, Game, Size
from bench.graph import make_graph
from bench.live import delays_of_each, delays_on_list
from bench.measurement import Measurement, Ratio
from bench.sockets import Told
from bench.steps_told import LOG, chain_figures, step, step_times
from tests.services.cases import cases


class KnownGame(Game):
    """A game whose figures are known before."""

    unit = "unit"

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
    ratio = Ratio("of ours", "per_second", ["theirs"], "ours")
    games = [KnownGame("ours", 100, 10, 100), KnownGame("theirs", 50, 10, 10)]

    ours, theirs = Measurement("x", games, [ratio]).run(3, lambda line: None)

    assert (ours.figures["per_second"], ours.low, ours.high) == (100, 10, 100)
    assert theirs.figures["of ours"] == 0.5


def test_rounds_are_interleaved() -> None:
    said: list[str] = []
    games = [KnownGame("a", 1, 1), KnownGame("b", 1, 1)]

    Measurement("x", games).run(2, said.append)

    played = [line.split(": ")[1] for line in said if line.startswith("round")]
    assert played == ["a ...", "b ...", "a ...", "b ..."]


def test_a_game_that_does_not_end_says_so() -> None:
    game = KnownGame("ours")
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


@cases("steps, edges", (50, 120), (1000, 4000), (1000, 17_000))
def test_a_graph_has_as_many_edges_as_it_says(steps: int, edges: int) -> None:
    needed = make_graph(steps, edges).needed

    assert len(needed) == steps
    assert sum(len(set(found)) for found in needed) == edges


def test_a_chain_is_told_by_its_total_and_the_median_pause_between_steps() -> None:
    times = [(0.0, 1.0), (1.5, 2.0), (2.25, 4.0)]

    figures = chain_figures(times)

    assert figures == {"per_second": 0.75, "total_ms": 4000, "gap_ms": 375}


def test_steps_say_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "told"))

    for left in (3, 2, 1):
        step(left, 0)

    [(begun, ended)] = step_times(tmp_path / "told")  # the last one alone
    assert begun <= ended


def test_a_page_is_told_of_a_change_when_it_hears_of_it_or_of_a_later_one() -> None:
    process, other = uuid4(), uuid4()
    heard = [Told(0, 1.5, process, 2), Told(0, 2.5, process, 4), Told(1, 1.1, other, 9)]

    delays = delays_of_each([(process, 2, 1.0), (process, 3, 2.0)], heard)

    assert delays == [[0.5], [0.5]]
    assert delays_of_each([(process, 5, 3.0)], heard) == [[None]]


def test_a_list_is_told_of_a_change_when_it_hears_the_next_time() -> None:
    process = uuid4()
    heard = [Told(0, 1.5, process, 2), Told(1, 1.25, process, 2)]

    assert delays_on_list([(process, 2, 1.0)], heard) == [[0.5, 0.25]]
    assert delays_on_list([(process, 3, 1.4)], heard) == [[pytest.approx(0.1), None]]


def test_a_page_soon_fetches_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    page = FetchingPage("http://127.0.0.1", "", process := uuid4(), last=now)

    page.hear({"id": str(uuid4()), "revision": 5})
    assert page.due == now + BESIDE

    page.hear({"id": str(process), "revision": 2})
    assert page.due == now + QUICK

    page.last, page.due = now, inf
    page.hear({"pace": 4.0})  # which tells of no change
    assert page.due == inf
    page.hear({"id": str(process), "revision": 3})
    assert page.due == now + 4.0

    page.soon(LATE, 0)  # whatever the pace
    assert page.due == now + LATE
