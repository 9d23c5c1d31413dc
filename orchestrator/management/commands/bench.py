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


class Command(BaseCommand):
    help = "Measures the engine beside raw RQ on the configured database and Redis, and removes what it wrote."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=sorted(MEASUREMENTS))
        parser.add_argument(
            "--count", type=int, help="how many events, chains or fan-outs"
        )
        parser.add_argument("--processes", type=int, default=2, help="how many workers")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        place, name, usual = MEASUREMENTS[options["what"]]
        try:
            measure = getattr(import_module(place), name)
        except ImportError:
            raise CommandError(
                "The benches are not part of the installed package: run them in a clone of the project."
            ) from None
        found = measure(options["count"] or usual, options["processes"])
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for name, value in found.items():
            self.stdout.write(f"{name.replace('_', ' ')}: {value}")
