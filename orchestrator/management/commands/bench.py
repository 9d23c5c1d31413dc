import json
from importlib import import_module
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

MEASUREMENTS = {
    "events": ("bench.events", "measure", 4000),
    "chain": ("bench.workflows", "chain", 500),
    "fanout": ("bench.workflows", "fanout", 60),
}
"""What is measured: by which function, and of how many by default."""

PLAYED = {"graph": ("bench.graph", 1)}
"""What is played in interleaved rounds: by which module, and of how many by default."""


class Command(BaseCommand):
    help = "Measures the engine beside raw RQ on the configured database and Redis, and removes what it wrote."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=sorted({*MEASUREMENTS, *PLAYED}))
        parser.add_argument(
            "--count", type=int, help="how many events, chains, fan-outs or graphs"
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
            "--steps",
            type=lambda text: [int(number) for number in text.split(",")],
            help="graph: of how many steps, such as 50,1000",
        )
        parser.add_argument(
            "--write",
            action="store_true",
            help="put the table into docs/performance.md",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            import_module("bench")
        except ImportError:
            raise CommandError(
                "The benches are not part of the installed package: run them in a clone of the project."
            ) from None
        if options["what"] in PLAYED:
            self._play(options)
            return
        place, name, usual = MEASUREMENTS[options["what"]]
        measure = getattr(import_module(place), name)
        found = measure(options["count"] or usual, options["processes"])
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for name, value in found.items():
            self.stdout.write(f"{name.replace('_', ' ')}: {value}")

    def _play(self, options: dict[str, Any]) -> None:
        from bench import report  # noqa: PLC0415  not in the installed package
        from bench.game import BenchFailed, Size  # noqa: PLC0415

        place, usual = PLAYED[options["what"]]
        size = Size(
            options["count"] or usual, options["processes"], options["patience"]
        )
        measured = import_module(place).measurement(size, options["steps"])
        try:
            rows = measured.run(options["rounds"], self.stderr.write)
            table = report.as_markdown(measured, rows, size.processes)
            if options["write"]:
                report.write(measured.name, table)
        except BenchFailed as error:
            raise CommandError(str(error)) from None
        found = json.dumps(report.as_json(measured, rows), indent=2)
        self.stdout.write(found if options["json"] else table)
