import json
import sys
from contextlib import AbstractContextManager
from typing import Any

import click
from django.core.management.base import CommandParser

from orchestrator.engine import invariants
from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    help = "Checks the invariants of the stored processes; exit code 1 if one does not hold."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = invariants.violations(_bar)
        if options["json"]:
            checks = [check.__name__ for check in invariants.CHECKS]
            lines = [json.dumps({"checks": checks, "violations": found}, indent=2)]
        else:
            number = len(invariants.CHECKS)
            lines = [*found, f"{number} invariants, {len(found)} violations"]
        for line in lines:
            self.stdout.write(line)
        if found:
            raise SystemExit(1)


def _bar(part: str, steps: int) -> AbstractContextManager[invariants.ProgressBar]:
    return click.progressbar(length=steps, label=f"{part:9}", file=sys.stderr)
