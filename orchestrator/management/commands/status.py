import json
from typing import Any

from django.core.management.base import CommandParser

from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.setup_status import MOST, status


class Command(ProcessionCommand):
    help = "Shows definitions with their counts, workers, queues and the age of the last sweep."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = status()
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for row in found["definitions"]:
            self.stdout.write(f"{row['name']} version {row['version']}")
            for noun in ("statuses", "steps"):
                counts = ", ".join(
                    f"{name} {n}" for name, n in sorted(row[noun].items())
                )
                self.stdout.write(f"  {noun}: {counts or 'none'}")
            if row["at_least"]:
                kinds = " and ".join(row["at_least"])
                self.stdout.write(
                    f"  counted among the newest {MOST:,} of those that are {kinds}"
                )
        for name, queue in found["queues"].items():
            bells = (
                "Redis is away"
                if queue["bells"] is None
                else f"{queue['bells']} bells out"
            )
            self.stdout.write(f"queue {name}: {queue['due']} due, {bells}")
        lag = found["sweep_lag_seconds"]
        swept = "never swept" if lag is None else f"swept {lag:.1f} s ago"
        self.stdout.write(f"{found['workers']} workers, {swept}")
