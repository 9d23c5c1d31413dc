"""`manage.py test`: everything that must hold, several stages at once, with one summary at the end.

Without arguments: formatter, linter, types, import contracts, and all tests. Those in tests/both run on SQLite and on
PostgreSQL, because their statements, locks or commits differ; of the others those of the engine run on PostgreSQL, and
those of pages on SQLite. With arguments, pytest alone runs, with them, on the same databases. `--full` runs everything
on both at its largest size, each test within the time that it may take.

What formats: `ruff format .`, `djlint templates --reformat --quiet`, `python -m tests.lint --fix`.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests import full_run
from tests.services.stage import (
    MOST_MORE,
    Stage,
    clock,
    heading,
    run,
    say,
    slowness,
    wait_for,
)

NOTHING_COLLECTED = 5  # pytest's exit code
PLACED = "PROCESSION_TESTS_PLACED"
"""Names a file. Where it is set, a run leaves out tests of another database, and makes the file if it has seen one."""
BUDGET_SECONDS = 600.0
"""What everything may take on two cores. Taking longer is said and fails nothing: others may use the machine."""
BUDGET_COMPUTING = 1_150.0
"""Seconds of a core that everything takes on an idle machine; past twice as much (and a little) the command fails.

Where cores are slow or shared, the same work takes more of their seconds: the limit is stretched by what a fixed
computation beside the stages took.
"""
MOST_COMPUTING = 2_400.0

CONTRACTS = "from importlinter.cli import lint_imports_command as c; c()"
CHECKS = {
    "Format (ruff format --check)": ["-m", "ruff", "format", "--check", "."],
    "Lint (ruff check)": ["-m", "ruff", "check", "."],
    "Templates: format (djlint --check)": ["-m", "djlint", "templates", "--check"],
    "Templates: lint (djlint --lint)": ["-m", "djlint", "templates", "--lint"],
    "CSS and JavaScript: format and lint": ["-m", "tests.lint"],
    "Types (mypy)": ["-m", "mypy"],
    "Import contracts (lint-imports)": ["-c", CONTRACTS],
}

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
TESTS = [
    ("engine", POSTGRESQL),
    ("reliability", POSTGRESQL),
    ("console", SQLITE),
    ("browser", SQLITE),
    ("both", POSTGRESQL),
    ("both", SQLITE),
]
"""Folders of tests that use a database, the longest stages first: then none is left alone at the end.

The stage of tests/reliability mostly waits, and leaves the cores to the others."""

TESTS_OF_A_FULL_RUN = [
    (name, database)
    for name in ("engine", "console", "reliability", "browser", "both")
    for database in (POSTGRESQL, SQLITE)
]

CROWDING = [("reliability", POSTGRESQL), ("reliability", SQLITE)]
"""Those of them with tests that keep the processors busy: at full size these run when nothing else does."""

NOT_DEAR = ["-m", "not dear"]
"""Leaves out the tests that compute for seconds: these run with `--full`, and where they are chosen."""
MOST_OF_A_TEST = 5.0
"""A test that takes more seconds of a core is named at the end, as one that should be dear or become cheaper."""

NO_SERVER = "WARNING: no PostgreSQL answers and none can be started here: the tests of the engine ran on SQLite"


def main(arguments: Sequence[str]) -> int:
    """Run the stages; return the exit code, 0 when all of them hold."""
    begun = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell ignores the key
        signal.signal(number, signal.default_int_handler)
    chosen = [word for word in arguments if word != full_run.OPTION]
    full = len(chosen) < len(arguments)
    os.environ["PROCESSION_TESTS_FULL"] = "yes" if full else ""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(report_folder()))
        if chosen and not (full and chosen == full_run.THESE_ALONE):
            stages = some(chosen, folder, stack)
        else:
            stages = everything(folder, stack, full, these_alone=bool(chosen))
        code = summary(stages)
        taken = time.monotonic() - begun
        if full:
            full_run.tell(stages, taken, keep=chosen in ([], full_run.THESE_ALONE))
        elif not chosen:
            say(on_time(taken))
            code = within_budget(stages) or code
    return code


def everything(
    folder: Path, stack: ExitStack, full: bool, these_alone: bool = False
) -> list[Stage]:
    """Run all stages, one more at once than there are cores, and more while these are idle.

    Args:
        folder: of the reports.
        stack: ends what is started for all of them.
        full: at their largest sizes.
        these_alone: only the tests that have such a size.
    """
    server, stages = postgresql(stack), list[Stage]()
    folders = placed(TESTS_OF_A_FULL_RUN if full else TESTS, bool(server))
    which = "full_size and " if these_alone else ""
    others = ["-m", f"{which}not crowds"] if full else NOT_DEAR
    if not these_alone:
        stages += [
            Stage(name, command, folder / f"check-{number}.log")
            for number, (name, command) in enumerate(CHECKS.items())
        ]
    stages += [
        of_folder(name, database, server, folder, others) for name, database in folders
    ]
    if full and not these_alone:
        play = ["-m", "tests.mutation_run"]
        stages.append(Stage("Mutants of the engine", play, folder / "mutants.log"))
    if not these_alone:
        ignored = sorted({f"--ignore=tests/{name}" for name, _ in TESTS})
        if not full:
            ignored += NOT_DEAR
        stages.append(pytest("All other tests", ignored, folder))
    run(stages, at_once=len(os.sched_getaffinity(0)) + 1, more=MOST_MORE)
    crowding = ["-m", f"{which}crowds"]
    alone = [
        of_folder(name, database, server, folder, crowding, " alone")
        for name, database in placed(CROWDING, bool(server))
        if full
    ]
    run(alone, at_once=1)
    if not server:
        say(NO_SERVER)
    return [*stages, *alone]


def placed(folders: list[tuple[str, str]], server: bool) -> list[tuple[str, str]]:
    """Return folders with their databases: without a server all of them on SQLite, each once."""
    if server:
        return folders
    return [(name, SQLITE) for name in dict.fromkeys(name for name, _ in folders)]


def some(arguments: Sequence[str], folder: Path, stack: ExitStack) -> list[Stage]:
    """Run the tests that pytest's arguments choose, each on its databases, which run side by side."""
    told = folder / "placed"
    first = pytest(f"Tests on {SQLITE}", arguments, folder)
    first.log = None
    first.environ = {**first.environ, PLACED: str(told)}
    first.start()
    while not first.ended() and not told.exists():
        time.sleep(0.02)
    stages = [first]
    if told.exists():
        stages.append(again(arguments, folder, stack))
        stages[-1].start()
        first.fine = stages[-1].fine = [0, NOTHING_COLLECTED]
    wait_for(stages)
    return stages


def again(arguments: Sequence[str], folder: Path, stack: ExitStack) -> Stage:
    """Return the stage of those chosen tests that run on PostgreSQL; where there is no server, of all on SQLite."""
    server = postgresql(stack)
    if not server:
        say(NO_SERVER)
        return pytest(f"Tests on {SQLITE} again", arguments, folder)
    stage = pytest(f"Tests on {POSTGRESQL}", arguments, folder, server)
    stage.environ = {**stage.environ, PLACED: str(folder / "placed")}
    return stage


def of_folder(
    name: str,
    database: str,
    server: str,
    folder: Path,
    chosen: Sequence[str],
    how: str = "",
) -> Stage:
    """Return the stage of the tests of one folder on one database; those that `chosen` leaves may be none."""
    name, arguments = f"tests/{name} on {database}{how}", [f"tests/{name}", *chosen]
    stage = pytest(name, arguments, folder, server if database == POSTGRESQL else "")
    if server:
        stage.environ = {**stage.environ, PLACED: str(folder / "placed")}
    if chosen != NOT_DEAR:
        stage.fine = [0, NOTHING_COLLECTED]
    return stage


def pytest(name: str, arguments: Sequence[str], folder: Path, url: str = "") -> Stage:
    """Return the stage of one run of pytest, on the server at `url` or on SQLite.

    Each has its own data, Valkey and ports.
    """
    file = name.replace("/", "-").replace(" ", "-")
    report = folder / f"{file}.xml"
    command = ["-m", "pytest", f"--junit-xml={report}", *arguments]
    log = folder / f"{file}.log"
    return Stage(name, command, log, {"DATABASE_URL": url}, report=report)


def report_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="procession-report-")


def postgresql(stack: ExitStack) -> str:
    """Return the address of the PostgreSQL server to test on, "" without one; one that is started ends with `stack`."""
    from tests.services import postgres  # its driver takes long to import

    url = os.environ.get("DATABASE_URL", "")
    if url.startswith("postgres"):
        return url
    try:
        return stack.enter_context(postgres.address())
    except (OSError, subprocess.SubprocessError) as error:
        say(f"PostgreSQL: {error}")
        return ""


def summary(stages: Sequence[Stage]) -> int:
    """Print how the stages ended; return the exit code."""
    heading("Summary")
    passed = failed = 0
    for stage in stages:
        good, bad = stage.counts()
        passed, failed = passed + good, failed + bad
        tests = f"{good + bad:5} tests" if stage.report else " " * 11
        word = "ok    " if stage.ok else "FAILED"
        took = f"{stage.seconds:5.0f} s, computing {stage.computing:4.0f} s"
        say(f"{word}  {took}  {tests}  {stage.name}")
    computing = sum(stage.computing for stage in stages)
    say(f"{passed} passed, {failed} failed; {computing:.0f} s of computing")
    return 0 if all(stage.ok for stage in stages) else 1


def within_budget(stages: Sequence[Stage]) -> int:
    """Say how much everything has computed; return 1 if that is far more than the budget."""
    computing = sum(stage.computing for stage in stages)
    slow = slowness()
    say(f"cores {slow:.2f} times slower than those of the budget")
    for seconds, name in dearest(stages):
        if seconds > MOST_OF_A_TEST * slow:
            say(f"{seconds:4.0f} s of computing  {name}")
    if computing <= MOST_COMPUTING * slow:
        return 0
    budget = f"The budget is {BUDGET_COMPUTING:.0f} s: make tests cheaper, or let"
    say(
        f"FAILED  {computing:.0f} s of computing. {budget} their largest sizes run with --full alone"
    )
    return 1


def dearest(stages: Sequence[Stage]) -> list[tuple[float, str]]:
    """Return the seconds of a core that each test has taken, the most first."""
    return sorted(
        (
            (float(told.get("value", 0)), f"{case.get('classname')}.{case.get('name')}")
            for stage in stages
            for case in stage.cases()
            for told in case.iter("property")
            if told.get("name") == "computing"
        ),
        reverse=True,
    )


def on_time(seconds: float) -> str:
    """Return the line that says how long everything took, and whether that was too long."""
    line = f"{clock(seconds)} in all"
    if seconds <= BUDGET_SECONDS:
        return line
    return f"WARNING: {line}; on two cores of one's own it should take less than {clock(BUDGET_SECONDS)}"
