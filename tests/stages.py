"""`manage.py test`: everything that must hold, several stages at once, with one summary at the end.

Without arguments: formatter, linter, types, import contracts, and all tests, those that use a database on SQLite and
again on PostgreSQL. With arguments, pytest alone runs, with them; on PostgreSQL if what they choose depends on the
database. `--full` runs the same tests at their largest sizes, each within the time that it may take.

What formats: `ruff format .`, `djlint templates --reformat --quiet`, `python -m tests.lint --fix`.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests import full_run
from tests.services.stage import Stage, clock, heading, run, say, wait_for

NOTHING_COLLECTED = 5  # pytest's exit code
BUDGET_SECONDS = 600.0
"""What everything may take on two cores. Taking longer is said and fails nothing: others may use the machine."""

CHECKS = {
    "Format (ruff format --check)": ["-m", "ruff", "format", "--check", "."],
    "Lint (ruff check)": ["-m", "ruff", "check", "."],
    "Templates: format (djlint --check)": ["-m", "djlint", "templates", "--check"],
    "Templates: lint (djlint --lint)": ["-m", "djlint", "templates", "--lint"],
    "CSS and JavaScript: format and lint": ["-m", "tests.lint"],
    "Types (mypy)": ["-m", "mypy"],
    "Import contracts (lint-imports)": [
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
    ],
}

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
TESTS = [
    ("integration", POSTGRESQL),
    ("integration", SQLITE),
    ("reliability", POSTGRESQL),
    ("browser", SQLITE),
    ("reliability", SQLITE),
    ("browser", POSTGRESQL),
]
"""Folders of tests that use a database, the longest stage first: then none is left alone at the end."""

CROWDING = [(name, database) for name, database in TESTS if name == "reliability"]
"""Those of them with tests that keep the processors busy: at full size these run when nothing else does."""


def main(arguments: Sequence[str]) -> int:
    """Run the stages; return the exit code, 0 when all of them hold."""
    begun = time.monotonic()
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
    return code


def everything(
    folder: Path, stack: ExitStack, full: bool, these_alone: bool = False
) -> list[Stage]:
    """Run all stages, one more at once than there are cores: much of a stage is waiting for its processes.

    Args:
        folder: of the reports.
        stack: ends what is started for all of them.
        full: at their largest sizes.
        these_alone: only the tests that have such a size.
    """
    server, stages = postgresql(stack), list[Stage]()
    which = "full_size and " if these_alone else ""
    others = ["-m", f"{which}not crowds"] if full else []
    if not these_alone:
        stages += [
            Stage(name, command, folder / f"check-{number}.log")
            for number, (name, command) in enumerate(CHECKS.items())
        ]
    stages += [
        of_folder(name, database, server, folder, others) for name, database in TESTS
    ]
    if not these_alone:
        ignored = [f"--ignore=tests/{name}" for name in {name for name, _ in TESTS}]
        stages.append(pytest("All other tests", ignored, folder))
    run(stages, at_once=len(os.sched_getaffinity(0)) + 1)
    crowding = ["-m", f"{which}crowds"]
    alone = [
        of_folder(name, database, server, folder, crowding, " alone")
        for name, database in CROWDING
        if full
    ]
    run(alone, at_once=1)
    return [*stages, *alone]


def some(arguments: Sequence[str], folder: Path, stack: ExitStack) -> list[Stage]:
    """Run the tests that pytest's arguments choose, those that depend on the database on both, side by side."""
    told = folder / "dependent"
    first = pytest(f"Tests on {SQLITE}", arguments, folder)
    first.log = None
    first.environ = {**first.environ, "PROCESSION_TESTS_TELL": str(told)}
    first.start()
    while not first.ended() and not told.exists():
        time.sleep(0.02)
    stages = [first]
    if told.exists():
        name = f"Tests on {POSTGRESQL}"
        stages.append(pytest(name, arguments, folder, postgresql(stack)))
        stages[-1].start()
    wait_for(stages)
    return stages


def of_folder(
    name: str,
    database: str,
    server: str,
    folder: Path,
    chosen: Sequence[str],
    how: str = "",
) -> Stage:
    url = server if database == POSTGRESQL else ""
    name, arguments = f"tests/{name} on {database}{how}", [f"tests/{name}", *chosen]
    return pytest(name, arguments, folder, url)


def pytest(name: str, arguments: Sequence[str], folder: Path, url: str = "") -> Stage:
    """Return the stage of one run of pytest: on SQLite, or on the server at `url` what depends on the database.

    Each has its own data, Valkey and ports.
    """
    file = name.replace("/", "-").replace(" ", "-")
    report = folder / f"{file}.xml"
    environ = {"DATABASE_URL": url, "PROCESSION_TESTS": "again" if url else ""}
    fine = [0, NOTHING_COLLECTED] if url else [0]
    command = ["-m", "pytest", f"--junit-xml={report}", *arguments]
    return Stage(name, command, folder / f"{file}.log", environ, fine, report)


def report_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="procession-report-")


def postgresql(stack: ExitStack) -> str:
    """Return the address of the PostgreSQL server to test on; one that is started ends with `stack`."""
    from tests.services import postgres  # its driver takes long to import

    url = os.environ.get("DATABASE_URL", "")
    return (
        url if url.startswith("postgres") else stack.enter_context(postgres.address())
    )


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


def on_time(seconds: float) -> str:
    """Return the line that says how long everything took, and whether that was too long."""
    line = f"{clock(seconds)} in all"
    if seconds <= BUDGET_SECONDS:
        return line
    return f"WARNING: {line}; on two cores of one's own it should take less than {clock(BUDGET_SECONDS)}"
