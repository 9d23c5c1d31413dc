import json
from argparse import ArgumentTypeError
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.core.management.base import CommandError, CommandParser

from orchestrator.management.procession_command import ProcessionCommand

USUAL = {
    "chain": 500,
    "events": 4000,
    "fanout": 60,
    "graph": 1,
    "live": 200,
    "memory": 1000,
    "paint": 20,
    "peers": 200,
}
"""What is measured, each by its module, and of how many by default."""

LEAST = {"events": 8, "live": 2, "paint": 2}
"""Where one is too few: a percentile is of two at least, and some games of `events` have a quarter of them."""

MORE = {"graph": ("steps",), "live": ("changes",)}
"""Options of one measurement alone."""


LONGEST = 1_000_000
"""Seconds of patience; Python cannot sleep for any time."""


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number, and not less than this."""

    def whole_number(text: str) -> int:
        if text.isdecimal() and int(text) >= least:
            return int(text)
        raise ArgumentTypeError(
            f"write a whole number of {least} or more, not {text!r}"
        )

    return whole_number


def numbers(text: str) -> list[int]:
    """Whole numbers with commas between them, each once."""
    each = [one.strip() for one in text.split(",")]
    if not all(one.isdecimal() and int(one) > 0 for one in each):
        raise ArgumentTypeError(
            f"write whole numbers of 1 or more, as 50,1000, not {text!r}"
        )
    return list(dict.fromkeys(map(int, each)))


def seconds(text: str) -> float:
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
        "and removes what it wrote."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=sorted(USUAL))
        parser.add_argument(
            "--count",
            type=at_least(1),
            help="how many events, chains, fan-outs, graphs or sockets",
        )
        parser.add_argument(
            "--processes", type=at_least(1), default=2, help="how many workers"
        )
        parser.add_argument(
            "--rounds",
            type=at_least(1),
            default=3,
            help="how often each game is played",
        )
        parser.add_argument(
            "--patience",
            type=seconds,
            default=600,
            help="seconds within which each part of a game has to be done",
        )
        parser.add_argument(
            "--steps", type=numbers, help="graph: of how many steps, such as 50,1000"
        )
        parser.add_argument(
            "--changes",
            # The page in Chromium has a tenth of the changes of ten seconds, and needs two.
            type=at_least(2),
            help="live: how many a second, usually 50",
        )
        parser.add_argument(
            "--write",
            action="store_true",
            help="put the table into docs/performance.md",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

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
        asked = {name: options[name] for name in MORE.get(what, ())}
        more = {name: value for name, value in asked.items() if value is not None}
        try:
            check_ready()
            measured = import_module(f"bench.{what}").measurement(size, **more)
            rows = measured.run(options["rounds"], self.stderr.write)
            table = report.as_markdown(measured, rows, size.processes)
            if options["write"]:
                report.write(measured.name, table)
        except BenchFailed as error:
            raise CommandError(str(error)) from None
        found = json.dumps(report.as_json(measured, rows), indent=2)
        self.stdout.write(found if options["json"] else table)


def _count(what: str, asked: int | None) -> int:
    """Of how many something is measured."""
    count = USUAL[what] if asked is None else asked
    if count < (least := LEAST.get(what, 1)):
        raise CommandError(f"bench {what} needs a --count of {least} or more")
    return count
