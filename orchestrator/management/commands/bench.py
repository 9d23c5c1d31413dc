import json
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

try:
    from bench import events, workflows
except ImportError as missing:
    raise CommandError(
        "The benches are not part of the installed package: run them in a clone of the project."
    ) from missing

MEASUREMENTS: dict[str, tuple[Callable[[int, int], dict[str, Any]], int]] = {
    "events": (events.measure, 4000),
    "chain": (workflows.chain, 500),
    "fanout": (workflows.fanout, 60),
}
"""What is measured, and of how many by default."""


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
        measure, usual = MEASUREMENTS[options["what"]]
        found = measure(options["count"] or usual, options["processes"])
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for name, value in found.items():
            self.stdout.write(f"{name.replace('_', ' ')}: {value}")
