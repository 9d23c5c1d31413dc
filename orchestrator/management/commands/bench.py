import json
import math
from argparse import ArgumentTypeError
from importlib import import_module
from typing import Any

from django.core.management.base import CommandError, CommandParser

from orchestrator.management.procession_command import ProcessionCommand, whole_number

USUAL_COUNTS = {
    "bursts": 10_000,
    "chain": 500,
    "events": 4000,
    "fanout": 60,
    "graph": 1,
    "live": 200,
    "memory": 1000,
    "paint": 20,
    "peers": 200,
}
"""The measurements, each by its module, with their usual counts."""

LEAST_COUNTS = {"events": 8, "live": 2, "paint": 2}
"""Counts of two and more: a percentile needs two values, and some games of `events` use a quarter of the count."""

OWN_OPTIONS = {"graph": ("steps",), "live": ("changes",)}
"""Options of one measurement alone."""

WHOLE = whole_number(1, math.inf, "a whole number of 1 or more")
CHANGES = whole_number(2, math.inf, "a whole number of 2 or more")
"""The page in Chromium has a tenth of the changes of ten seconds, and needs two."""

LONGEST = 1_000_000
"""The most seconds of patience; Python cannot sleep for any time."""


def numbers(text: str) -> list[int]:
    """Return whole numbers with commas between them, each once."""
    each = [one.strip() for one in text.split(",")]
    if not all(one.isdecimal() and int(one) > 0 for one in each):
        raise ArgumentTypeError(
            f"write whole numbers of 1 or more, as 50,1000, not {text!r}"
        )
    return list(dict.fromkeys(map(int, each)))


def parse_seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if 0 < number <= LONGEST:
        return number
    raise ArgumentTypeError(
        f"write a number of seconds above 0, at most {LONGEST}, not {text!r}"
    )


class Command(ProcessionCommand):
    help = (
        "Measures the engine beside raw RQ and the limits of the configured database, in interleaved rounds, "
        "and removes its rows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("what", choices=sorted(USUAL_COUNTS))
        add(
            "--count", type=WHOLE, help="events, processes, fan-outs, graphs or sockets"
        )
        add("--processes", type=WHOLE, default=2, help="how many workers")
        add("--rounds", type=WHOLE, default=3, help="how often each game is played")
        of_parts = "seconds within which each part of a game has to be done"
        add("--patience", type=parse_seconds, default=600, help=of_parts)
        add("--steps", type=numbers, help="graph: of how many steps, such as 50,1000")
        add("--changes", type=CHANGES, help="live: how many a second, usually 50")
        add(
            "--write",
            action="store_true",
            help="put the table into docs/performance.md",
        )
        add("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        what = options["what"]
        count = _count(what, options["count"])
        try:
            from bench import report  # noqa: PLC0415  not in the installed package
            from bench.game import BenchFailed, Size  # noqa: PLC0415
            from bench.run import check_ready  # noqa: PLC0415
        except ImportError:
            raise CommandError(
                "The benches are not part of the installed package: run them in a clone of the project."
            ) from None
        size = Size(count, options["processes"], options["patience"])
        own = OWN_OPTIONS.get(what, ())
        given = {name: options[name] for name in own if options[name] is not None}
        try:
            check_ready()
            measured = import_module(f"bench.{what}").measurement(size, **given)
            rows = measured.run(options["rounds"], self.stderr.write)
            table = report.as_markdown(measured, rows, size.processes)
            if options["write"]:
                report.write(measured.name, table)
        except BenchFailed as error:
            raise CommandError(str(error)) from None
        except ModuleNotFoundError as error:
            raise CommandError(
                f"bench {what} needs the package {error.name}: pip install --requirement requirements-dev.lock"
            ) from None
        figures = json.dumps(report.as_json(measured, rows), indent=2)
        self.stdout.write(figures if options["json"] else table)


def _count(what: str, asked: int | None) -> int:
    """Return how many of a measurement are made."""
    count = USUAL_COUNTS[what] if asked is None else asked
    if count < (least := LEAST_COUNTS.get(what, 1)):
        raise CommandError(f"bench {what} needs a --count of {least} or more")
    return count
