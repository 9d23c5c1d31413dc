import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from orchestrator.checking.upgrades import upgrade_findings
from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    help = (
        "Checks before a deploy whether this code can go on with what is stored: live processes, and messages that "
        "wait. Run it with the new code on the database in use. Exit code 1 if something needs a hand."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        found = list(upgrade_findings())
        if options["json"]:
            self.stdout.write(json.dumps([asdict(one) for one in found], indent=2))
        else:
            for one in found:
                self.stdout.write(f"{one.what}\n    {one.remedy}")
            self.stdout.write(f"{len(found)} findings" if found else "Nothing found.")
        if found:
            raise SystemExit(1)
