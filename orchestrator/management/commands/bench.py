import json
from argparse import ArgumentTypeError
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

MORE = {"graph": ("steps",), "live": ("changes",)}
"""Options of one measurement alone."""


def numbers(text: str) -> list[int]:
    """Whole numbers with commas between them."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"write it as 50,1000, not as {text!r}") from None


class Command(ProcessionCommand):
    help = (
        "Measures the engine beside raw RQ and the limits of the configured database, in interleaved rounds, "
        "and removes what it wrote."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=sorted(USUAL))
        parser.add_argument(
            "--count",
            type=int,
            help="how many events, chains, fan-outs, graphs or sockets",
        )
        parser.add_argument("--processes", type=int, default=2, help="how many workers")
        parser.add_argument(
            "--rounds", type=int, default=3, help="how often each game is played"
        )
        parser.add_argument(
            "--patience",
            type=float,
            default=600,
            help="seconds within which each part of a game has to be done",
        )
        parser.add_argument(
            "--steps", type=numbers, help="graph: of how many steps, such as 50,1000"
        )
        parser.add_argument(
            "--changes", type=int, help="live: how many a second, usually 50"
        )
        parser.add_argument(
            "--write",
            action="store_true",
            help="put the table into docs/performance.md",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from bench import report  # noqa: PLC0415  not in the installed package
            from bench.game import BenchFailed, Size  # noqa: PLC0415
            from bench.run import check_ready  # noqa: PLC0415
        except ImportError:
            raise CommandError(
                "The benches are not part of the installed package: run them in a clone of the project."
            ) from None

        what = options["what"]
        size = Size(
            options["count"] or USUAL[what], options["processes"], options["patience"]
        )
        more = {name: options[name] for name in MORE.get(what, ()) if options[name]}
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
