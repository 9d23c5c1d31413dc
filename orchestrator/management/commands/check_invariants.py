import json
import sys
from contextlib import AbstractContextManager
from typing import Any

import click
from django.core.management.base import CommandParser

from orchestrator.engine import invariants
from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    help = "Checks what must always hold of the stored processes; exit code 1 when something does not."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = invariants.violations(_bar)
        if options["json"]:
            checks = [check.__name__ for check in invariants.CHECKS]
            self.stdout.write(
                json.dumps({"checks": checks, "violations": found}, indent=2)
            )
        else:
            for line in found:
                self.stdout.write(line)
            self.stdout.write(
                f"{len(invariants.CHECKS)} invariants, {len(found)} violations"
            )
        if found:
            raise SystemExit(1)


def _bar(part: str, steps: int) -> AbstractContextManager[invariants.Bar]:
    return click.progressbar(length=steps, label=f"{part:9}", file=sys.stderr)
