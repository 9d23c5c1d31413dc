from argparse import SUPPRESS
from importlib import import_module
from subprocess import CalledProcessError
from typing import Any

import click
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from orchestrator.management.procession_command import ProcessionCommand, whole_number


class Command(ProcessionCommand):
    """Fills the database with copies of processes that were run for real; after an interruption it goes on."""

    help = (
        "Fills the database with processes of the examples, for trying it out at size."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--instances",
            type=whole_number(1, 100_000_000, "a number of processes: 1 to 100000000"),
            help="how many seeded processes to have, with those of earlier calls",
        )
        parser.add_argument("--record", action="store_true", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        number = options["instances"]
        if number is None and not options["record"]:
            raise CommandError("Say how many, as in: seed --instances 100000")
        try:
            seeding = import_module("bench.seed.seeding")
            recording = import_module("bench.seed.recording")
        except (ImportError, RuntimeError):
            raise CommandError(
                "Seeding is not part of the installed package: run it in a clone of the project, with its examples."
            ) from None
        # The tables of the examples may be new to the database.
        call_command("migrate", verbosity=0, interactive=False)
        if options["record"]:
            self.stdout.write(recording.as_json())
            return
        there = seeding.count_copies()
        if there > number:
            raise CommandError(
                f"There are {there:,} seeded processes already, more than {number:,}. None is removed."
            )
        if there < number:
            self.stdout.write("Running the processes to copy ...")
            self._seed(seeding, _recordings(recording), there, number)
        self.stdout.write(f"There are {seeding.count_copies():,} seeded processes.")

    def _seed(self, seeding: Any, copied: Any, there: int, number: int) -> None:
        with click.progressbar(length=number, label="Seeding", show_pos=True) as bar:
            bar.update(there)
            try:
                seeding.seed(number, copied, bar.update)
            except seeding.SeededBeside as error:
                raise CommandError(str(error)) from None
        self.stdout.write("Updating the statistics of the database ...")
        seeding.tidy()


def _recordings(recording: Any) -> Any:
    try:
        return recording.recordings()
    except CalledProcessError as failed:
        said = failed.stderr.strip().splitlines()[-1:]
        raise CommandError(
            f"The processes to be copied did not run: {' '.join(said)}"
        ) from None
