import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.setup_status import MOST, setup_figures


class Command(ProcessionCommand):
    help = "Shows definitions with their counts, workers, queues and the age of the last sweep."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = setup_figures()
        lines = [json.dumps(found, indent=2)] if options["json"] else _lines(found)
        for line in lines:
            self.stdout.write(line)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for row in found["definitions"]:
        yield f"{row['name']} version {row['version']}"
        for noun in ("statuses", "steps"):
            counts = ", ".join(f"{name} {n}" for name, n in sorted(row[noun].items()))
            yield f"  {noun}: {counts or 'none'}"
        if kinds := " and ".join(row["at_least"]):
            yield f"  counted among the newest {MOST:,} of those that are {kinds}"
    for name, queue in found["queues"].items():
        bells = queue["bells"]
        said = "Redis is away" if bells is None else f"{bells} bells out"
        yield f"queue {name}: {queue['due']} due, {said}"
    lag = found["sweep_lag_seconds"]
    swept = "never swept" if lag is None else f"swept {lag:.1f} s ago"
    yield f"{found['workers']} workers, {swept}"
