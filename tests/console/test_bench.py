"""A figure of the benches counts only when the rows say that the work was done; nothing of it stays behind."""

import sys
from collections.abc import Callable, Iterator

import pytest
from django.core.management import CommandError, call_command

from bench import checks, graph, report
from bench.chain import LENGTH, Chain
from bench.game import BenchFailed, Size
from bench.measurement import Measurement
from bench.memory import PROC
from bench.run import HELD, QUEUE, hold_back, registered_definition, release
from bench.workflow_game import WorkflowGame
from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Checkpoint, Definition, ProcessInstance, StepRun
from tests.services.cases import cases
from tests.services.invariants import undone
from tests.services.program import run_command
from tests.services.sizes import FULL
from tests.services.valkey import ValkeyServer

pytestmark = pytest.mark.django_db(transaction=True)

PLAY = """
from bench.chain import LENGTH, Chain
from bench.game import Size, play
from bench.workflow_game import WorkflowGame
print(sorted(play(WorkflowGame(Size(2, processes=1), "chain", Chain, LENGTH))))
"""


REMEMBER = """
from bench.game import Size, play
from bench.memory import ProcessMemory
print(sorted(play(ProcessMemory(Size(2, processes=1)))))
"""


@pytest.fixture
def chains() -> Iterator[int]:
    """Run two chains to their end; give their number."""
    with registered_definition(Chain):
        for _ in range(2):
            start_process(Chain)
        drain(QUEUE)
        yield 2


def test_a_bench_without_one_of_its_packages_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "bench.live", raising=False)
    monkeypatch.delitem(sys.modules, "bench.real_page", raising=False)
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    with pytest.raises(CommandError, match=r"needs the package playwright.sync_api: p"):
        call_command("bench", "live")


DAMAGE: dict[str, Callable[[], object]] = {
    r"by status: \{'failed': 2\}, not": lambda: ProcessInstance.objects.update(
        status="failed"
    ),
    "visits by status and attempt": lambda: StepRun.objects.update(attempt=2),
    "rows without their checkpoint": lambda: Checkpoint.objects.all().delete(),
}


def test_what_was_done_passes_and_what_was_not_voids_the_figure(chains: int) -> None:
    checks.check_completed(Chain.name, chains, chains * LENGTH)
    for said, damage in DAMAGE.items():
        with undone():
            damage()
            with pytest.raises(BenchFailed, match=said):
                checks.check_completed(Chain.name, chains, chains * LENGTH)


def test_what_is_held_back_runs_when_it_is_released() -> None:
    with registered_definition(Chain):
        with hold_back(Chain):
            start_process(Chain)

        assert drain(QUEUE) == 0
        assert StepRun.objects.get().queue == HELD
        release(bells=0)
        drain(QUEUE)

        checks.check_completed(Chain.name, 1, LENGTH)


def test_a_game_with_real_workers_measures_and_leaves_nothing_behind() -> None:
    played = run_command("shell", "--no-imports", "-c", PLAY)

    assert played.returncode == 0, played.stderr
    for figure in ("'per_second'", "'statements'"):
        assert figure in played.stdout
    for rows in (ProcessInstance.objects, Definition.objects):
        assert not rows.filter(name=Chain.name).exists()


def test_a_table_says_how_busy_the_machine_was_before() -> None:
    game = WorkflowGame(Size(1), "ours", Chain, LENGTH)
    measured = Measurement("x", [game], busy=3.5)
    measured.played["ours"] = [{"per_second": 1234}]

    table = report.as_markdown(measured, measured.rows(), 2)

    assert "load before: 3.5" in table
    assert "| ours (steps) | 1,234 (1,234-1,234) |" in table


WHOLE = "is not a whole number of 1 or more"


@cases(
    "words, said",
    *((f"chain --rounds {n}", f"--rounds: '{n}' {WHOLE}") for n in (0, "many")),
    *((f"chain --count {n}", f"--count: '{n}' {WHOLE}") for n in (-5, 0)),
    ("chain --processes 0", f"--processes: '0' {WHOLE}"),
    ("chain --patience nan", "--patience: write a number of seconds above 0"),
    ("chain --patience 1e12", "--patience: write a number of seconds above 0"),
    ("graph --steps 0", "--steps: write whole numbers of 1 or more, as 50,1000"),
    ("graph --steps 50,", "--steps: write whole numbers of 1 or more, as 50,1000"),
    ("live --changes 0", "--changes: '0' is not a whole number of 2 or more"),
    ("paint --count 1", "bench paint needs a --count of 2 or more"),
    ("events --count 7", "bench events needs a --count of 8 or more"),
)
def test_a_number_that_measures_nothing_is_refused(words: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("bench", *words.split())


def test_a_graph_has_no_more_edges_than_its_layers() -> None:
    for steps in (1, 20, 21, 30):
        [_, game] = graph.measurement(Size(1), [steps]).games

        assert isinstance(game, WorkflowGame)
        edges = [set(needed) for needed in game.given.needed]
        assert f"{sum(map(len, edges))} edges" in game.name


@pytest.mark.skipif(not PROC.exists(), reason="memory is read from /proc")
@pytest.mark.skipif(not FULL, reason="with --full: six programs start for it")
def test_the_memory_of_every_kind_of_process_is_measured(valkey: ValkeyServer) -> None:
    """By real programs, which know what they are to run."""
    played = run_command("shell", "-v0", "-c", REMEMBER)

    kinds = ["call", "db", "held", "supervisor", "web", "worker"]
    figures = [*(f"{kind}_mb" for kind in kinds), "per_second"]
    assert played.stdout.strip() == str(sorted(figures)), played.stderr[-2000:]
