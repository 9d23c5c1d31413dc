"""Mutants of the engine, each played against the tests that are nearest to it: `python3 -m tests.mutation_run`.

The nearest tests run once, on SQLite, while it is noted which lines of the engine each of them runs. Then each
mutant has a process of its own: a copy of this one, in which one function is another, with the database as it was at
the beginning. The tests that reach the changed statement run there, the shortest first, up to the first that fails. The
same tests then run in a copy without the mutant. A mutant is killed if it never ends, or if its test passes there. A
test that fails there too is not used any more, and the mutant is played again. A mutant that survives is shown.

A few mutants change nothing that a test could notice. They are named in `tests.services.survivors`, with the reasons.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.services.mutant_process import NOT_MADE, OUTCOMES, in_copy
from tests.services.mutants import Mutant, choose_mutants, install
from tests.services.stage import ROOT, clock, heading, say
from tests.services.survivors import SURVIVORS

ROOMS = ("change", "events", "steps", "work")
"""The rooms of orchestrator/engine whose mutants are played: "work" has the claims."""

NEAREST = (ROOT / "tests" / "data" / "nearest_tests.txt").read_text().split()
"""The files of the tests that are nearest to these rooms. Others reach them too, and take longer."""

PROGRAMS = {"workers", "live_site", "page", "start", "valkey"}
"""Fixtures that start programs, which have no mutant, or that end the server that all tests share."""

SEED, NUMBER = 34, 200
LEAST_KILLED = 0.9
MOST_TESTS, MOST_OF_FILE, MOST_SECONDS = 100, 4, 20.0
"""Of the tests that reach a mutant: how many it meets, at first of one file, and for how many seconds of a core."""
OF_EACH_ROW, MOST_OF_ROWS = "test_written_rows", 20
"""The tests that compare each column, and how many of them it meets at first."""


class Recorded:
    """What is known of the tests: how long each takes, and which of them reach a line.

    Args:
        items: the tests.
        told: the file that `record` wrote; tests that it lacks did not pass, and are not used.
    """

    def __init__(self, items: Sequence[pytest.Function], told: Path) -> None:
        places = {item.nodeid: place for place, item in enumerate(items)}
        seconds, lines = json.loads(told.read_text())
        self.files = [item.path for item in items]
        self.seconds = {
            places[one]: took for one, took in seconds.items() if one in places
        }
        """What each takes of a core, by its place."""
        self.reached = {
            (path, line): {places[one] for one in tests if one in places}
            for path, line, tests in lines
        }
        """The places of the tests that run a line of a file."""

    def nearest(self, mutant: Mutant) -> list[int]:
        """Return the tests for a mutant, the shortest first; few of one file, unless others are too few."""
        first, last = mutant.lines
        found = set[int]()
        for line in range(first, last + 1):
            found |= self.reached.get((mutant.path, line), set())
        by_time = sorted(found & self.seconds.keys(), key=self.seconds.__getitem__)
        of_file = defaultdict[Path, int](int)
        chosen, others = list[int](), list[int]()
        for test in by_time:
            of_file[self.files[test]] += 1
            tells_all = self.files[test].name.startswith(OF_EACH_ROW)
            few = of_file[self.files[test]] <= (
                MOST_OF_ROWS if tells_all else MOST_OF_FILE
            )
            (chosen if few else others).append(test)
        taken, total = list[int](), 0.0
        for test in [*chosen, *others][:MOST_TESTS]:
            total += self.seconds[test]
            if taken and total > MOST_SECONDS:
                break
            taken.append(test)
        return sorted(taken, key=self.seconds.__getitem__)


class MutationRun:
    """A plugin of pytest: in place of running the tests one by one, it plays mutants against them.

    Args:
        mutants: which ones.
        told: where it is kept what was recorded of the tests, for another run; None not to keep it.
    """

    def __init__(self, mutants: Sequence[Mutant], told: Path | None = None) -> None:
        self.mutants, self.told = mutants, told
        self.outcomes: dict[Mutant, str] = {}
        self.computing = 0.0
        self.controls = set[tuple[int, ...]]()
        """The tests, one after the other, that have passed in a copy without a mutant."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _is_near(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Play all mutants; where tests could not be collected, none."""
        if session.testsfailed:
            return True
        items = [item for item in session.items if isinstance(item, pytest.Function)]
        say(f"{len(self.mutants)} mutants, {len(items)} tests")
        # It sets up what lasts for the whole run: the database and Valkey.
        if not _play(items[:1]):
            raise RuntimeError(f"{items[0].nodeid} fails without a mutant")
        with tempfile.TemporaryDirectory(prefix="procession-mutants-") as folder:
            base = Database(Path(folder))
            recorded = self._record(
                items, base, self.told or Path(folder) / "recorded.json"
            )
            for number, mutant in enumerate(self.mutants, 1):
                outcome = self._outcome_of(mutant, items, recorded, base)
                self.outcomes[mutant] = outcome
                percent = f"[{100 * number // len(self.mutants):3}%]"
                say(
                    f"{percent} {number:3} {outcome:9} {self.computing:5.0f} s  {mutant}"
                )
            base.restore()
        return True

    def _record(
        self, items: list[pytest.Function], base: "Database", told: Path
    ) -> "Recorded":
        begun = time.monotonic()
        base.restore()
        if not told.exists():
            with os.fdopen(os.dup(1), "w") as progress:  # which a copy lacks
                outcome, computing = in_copy(
                    lambda: record(items, told, progress), 3600.0
                )
            self.computing += computing
            if outcome != "survived":
                raise RuntimeError(f"the tests could not be recorded: {outcome}")
        recorded = Recorded(items, told)
        took = clock(time.monotonic() - begun)
        number = len(recorded.seconds)
        say(f"{number} tests recorded, {self.computing:.0f} s of computing, {took}")
        return recorded

    def _outcome_of(
        self,
        mutant: Mutant,
        items: Sequence[pytest.Function],
        recorded: Recorded,
        base: "Database",
    ) -> str:
        while True:
            nearest = recorded.nearest(mutant)
            if not nearest:
                return "unreached"
            outcome, failed = self._play_once(mutant, nearest, items, recorded, base)
            if failed is None:
                return outcome
            say(f"not used any more, it fails: {items[failed].nodeid}")
            del recorded.seconds[failed]

    def _play_once(
        self,
        mutant: Mutant,
        nearest: Sequence[int],
        items: Sequence[pytest.Function],
        recorded: Recorded,
        base: "Database",
    ) -> tuple[str, int | None]:
        """Return how a mutant ends, and the place of a test that also fails without the mutant, if it met one."""
        chosen = [items[place] for place in nearest]

        def play() -> bool:
            try:
                install(mutant)
            except (LookupError, ValueError):
                os._exit(NOT_MADE)
            return _play(chosen, base.failed)

        base.restore()
        most = 30 + 10 * sum(recorded.seconds[place] for place in nearest)
        outcome, computing = in_copy(play, most)
        self.computing += computing
        if outcome != "killed" or not base.failed.exists():
            return outcome, None  # one that ends its process fails no test
        last = int(base.failed.read_text())
        known = tuple(nearest[: last + 1])
        if known in self.controls:
            return outcome, None
        base.restore()
        control, computing = in_copy(
            lambda: _play(chosen[: last + 1], base.failed), most
        )
        self.computing += computing
        if control != "survived":
            told = base.failed.exists()
            return outcome, nearest[int(base.failed.read_text()) if told else last]
        self.controls |= {known[:end] for end in range(1, len(known) + 1)}
        return outcome, None


class Database:
    """The test database, a file of SQLite: a copy as it is at first, and from that one for each mutant."""

    def __init__(self, folder: Path) -> None:
        from django.db import connections

        connections.close_all()
        self.path = Path(connections["default"].settings_dict["NAME"])
        self.copy = folder / "database"
        self.failed = folder / "failed"
        """Where a copy of the process leaves the number of the test that has failed."""
        self.copy.write_bytes(self.path.read_bytes())

    def restore(self) -> None:
        from django.db import connections

        connections.close_all()
        for rest in ("-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + rest).unlink(missing_ok=True)
        self.path.write_bytes(self.copy.read_bytes())
        self.failed.unlink(missing_ok=True)


def _is_near(item: pytest.Item) -> bool:
    """Whether a test runs the engine in this process, at its usual size."""
    if item.get_closest_marker("full_size") or item.get_closest_marker("asyncio"):
        return False
    return PROGRAMS.isdisjoint(getattr(item, "fixturenames", ()))


def _play(items: Sequence[pytest.Function], failed: Path | None = None) -> bool:
    """Run tests up to the first that fails; return whether none did, and write the number of that one."""
    from _pytest.runner import runtestprotocol

    for number, item in enumerate(items):
        # What lasts for the whole run is left as it is: only the session still needs it.
        behind: Any = items[number + 1] if number + 1 < len(items) else item.session
        reports = runtestprotocol(item, log=False, nextitem=behind)
        if any(report.failed for report in reports):
            if failed:
                failed.write_text(str(number))
            return False
    return True


def record(items: list[pytest.Function], told: Path, progress: TextIO) -> bool:
    """Run all tests, and write which lines of the rooms each runs, and how long it takes."""
    import coverage
    from _pytest.runner import runtestprotocol

    include = [f"{ROOT}/orchestrator/engine/{room}/*" for room in ROOMS]
    noted = coverage.Coverage(data_file=None, include=include, config_file=False)
    noted.start()
    seconds = dict[str, float]()
    for place, item in enumerate(items):
        noted.switch_context(item.nodeid)
        begun = time.process_time()
        behind: Any = items[place + 1] if place + 1 < len(items) else item.session
        reports = runtestprotocol(item, log=False, nextitem=behind)
        if all(report.passed for report in reports):
            seconds[item.nodeid] = time.process_time() - begun
        for report in reports:
            if report.failed:
                last = report.longreprtext.splitlines()[-1:]
                progress.write(f"not used, it fails: {item.nodeid}: {last}\n")
        if place % 100 == 99:
            progress.write(f"{place + 1} tests recorded\n")
        progress.flush()
    noted.stop()
    data = noted.get_data()
    lines = [
        (str(Path(path).relative_to(ROOT)), line, sorted(filter(None, tests)))
        for path in data.measured_files()
        for line, tests in data.contexts_by_lineno(path).items()
    ]
    told.write_text(json.dumps([seconds, lines]))
    return True


def verdict(outcomes: dict[Mutant, str], computing: float) -> int:
    """Say how the mutants ended; return 0 if enough of them were killed, and every other one is named."""
    heading("Mutants")
    found = {word: sum(one == word for one in outcomes.values()) for word in OUTCOMES}
    killed = found["killed"] + found["timed out"]
    share = killed / len(outcomes) if outcomes else 0.0
    told = ", ".join(f"{number} {word}" for word, number in found.items())
    say(f"{told}: {share:.1%} killed; {computing:.0f} s of computing")
    code = 0 if share >= LEAST_KILLED else 1
    for mutant, word in outcomes.items():
        if word in ("killed", "timed out"):
            continue
        reason = SURVIVORS.get(mutant.name)
        code = code if reason else 1
        say(f"{word}  {mutant}\n    {reason or f'NOT NAMED: {mutant.name!r}'}")
    return code


def files_of_rooms() -> list[Path]:
    """Return the files whose mutants are played."""
    engine = ROOT / "orchestrator" / "engine"
    return sorted(path for room in ROOMS for path in (engine / room).rglob("*.py"))


def main(words: Sequence[str]) -> int:
    """Play mutants as the words of a command line say; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tests", nargs="*", default=NEAREST)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--skip", type=int, default=0, help="so many of these")
    parser.add_argument("--of", default="", help="a part of the names of their files")
    parser.add_argument("--recorded", type=Path, help="keeps what tests reach")
    given = parser.parse_args(words)
    os.environ["PROCESSION_TESTS_FULL"] = os.environ["DATABASE_URL"] = ""
    os.environ["COVERAGE_CORE"] = "ctrace"  # the one that tells tests apart
    paths = [path for path in files_of_rooms() if given.of in str(path)]
    chosen = choose_mutants(paths, given.seed, number=given.number)[given.skip :]
    played = MutationRun(chosen, given.recorded)
    options = ["-q", "-s", "-p", "no:cacheprovider", "--no-header", "--tb=native"]
    code = pytest.main([*options, *given.tests], plugins=[played])
    if len(played.outcomes) < len(chosen):
        return int(code) or 1
    return verdict(played.outcomes, played.computing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
