"""`manage.py install media`: the optional extra of the examples. `bootstrap` has installed it before Django starts."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.serving.programs import lacks_media_readers


class Command(ProcessionCommand):
    """Says that the extra is there."""

    help = "Install the readers of pictures, speech and films for the examples."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("extra", choices=["media"])

    def handle(self, **options: Any) -> None:
        if lacks_media_readers():
            raise CommandError(
                "not installed; in an environment of your own: pip install --require-hashes -r requirements-media.lock"
            )
        self.stdout.write("The examples read real media now: manage.py up --demo")
