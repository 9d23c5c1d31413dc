"""`manage.py test`: everything that must hold, in order, with one summary at the end.

Without arguments: formatters, linters, types, import contracts, and all tests, those that use a database on SQLite and
again on PostgreSQL, side by side. With arguments, pytest alone runs, with them, on both databases.

What formats: `ruff format .`, `djlint templates --reformat --quiet`, `python -m tests.lint --fix`.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.services import chromium, postgres

ROOT = Path(__file__).resolve().parent.parent
NOTHING_COLLECTED = 5  # pytest's exit code

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


@dataclass
class Result:
    """How one stage ended."""

    name: str
    ok: bool
    passed: int = 0
    failed: int = 0


def main(arguments: Sequence[str]) -> int:
    """Run the stages; return the exit code, 0 when all of them hold."""
    results = []
    chromium_is_there()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(report_folder()))
        second = PytestRun("PostgreSQL", postgresql(stack), folder, again=True)
        first = PytestRun("SQLite", "", folder)
        second.start(arguments, folder / "second.log")
        if not arguments:
            results += [check(name, command) for name, command in CHECKS.items()]
        first.start(arguments)
        results += [first.result(), second.result()]
    return summary(results)


def check(name: str, command: Sequence[str]) -> Result:
    heading(name)
    return Result(name, run(command, os.environ) == 0)


def chromium_is_there() -> None:
    """Install Chromium where there is none; where that is not possible the browser tests fail with the remedy."""
    if chromium.chromium():
        return
    heading("Installing Chromium for the browser tests")
    try:
        chromium.install()
    except chromium.NoChromium as remedy:
        say(str(remedy))


def postgresql(stack: ExitStack) -> str:
    """Return the address of the PostgreSQL server to test on; one that is started ends with `stack`."""
    url = os.environ.get("DATABASE_URL", "")
    return (
        url if url.startswith("postgres") else stack.enter_context(postgres.address())
    )


class PytestRun:
    """One run of pytest on one database. The two run side by side: each has its own data, Valkey and ports, and much
    of a run's time is spent waiting for workers.
    """

    def __init__(
        self, database: str, url: str, folder: Path, *, again: bool = False
    ) -> None:
        self.name = f"Tests on {database}"
        self.report = folder / f"{database}.xml"
        self.again = again
        self.log: Path | None = None
        self.environ = {
            **os.environ,
            "DATABASE_URL": url,
            "PROCESSION_TESTS": "again"
            if again
            else "",  # leaves out what does not depend on the database
        }

    def start(self, arguments: Sequence[str], log: Path | None = None) -> None:
        """Start the run; with a log its lines are kept until the result is asked for."""
        self.log = log
        command = [
            sys.executable,
            "-m",
            "pytest",
            f"--junit-xml={self.report}",
        ]
        with ExitStack() as stack:
            output = stack.enter_context(log.open("wb")) if log else None
            if not log:
                heading(self.name)
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=ROOT,
                env=self.environ,
                stdout=output,
                stderr=subprocess.STDOUT if log else None,
            )

    def result(self) -> Result:
        """Wait for the run's end and show what it has said meanwhile."""
        code = self.process.wait()
        if self.log:
            heading(self.name)
            say(self.log.read_text(errors="replace"))
        fine = {0, NOTHING_COLLECTED if self.again else 0}
        return Result(self.name, code in fine, *counts(self.report))


def report_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="procession-report-")


def counts(report: Path) -> tuple[int, int]:
    """Return how many tests the report of a run says passed and failed; errors count as failed."""
    if not report.exists():
        return 0, 0
    passed = failed = 0
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  pytest wrote it
        endings = {child.tag for child in case}
        failed += bool(endings & {"failure", "error"})
        passed += not endings & {"failure", "error", "skipped"}
    return passed, failed


def summary(results: Sequence[Result]) -> int:
    """Print how the stages ended; return the exit code."""
    heading("Summary")
    for result in results:
        say(f"{'ok    ' if result.ok else 'FAILED'}  {result.name}")
    say(
        f"{sum(r.passed for r in results)} passed, {sum(r.failed for r in results)} failed"
    )
    return 0 if all(result.ok for result in results) else 1


def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environ, check=False
    ).returncode


def heading(text: str) -> None:
    say(f"\n== {text}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
