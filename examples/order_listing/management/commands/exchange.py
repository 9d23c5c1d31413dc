import argparse
from typing import Any

from django.core.management.base import BaseCommand

from examples.exchange.__main__ import add_options, run


class Command(BaseCommand):
    """The simulated exchange, as `python -m examples.exchange`, but lively unless told to be calm."""

    help = "Runs the simulated exchange until SIGTERM or Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_options(parser)
        parser.add_argument(
            "--calm", dest="lively", action="store_false", help="no trouble at all"
        )
        parser.set_defaults(lively=True)

    def handle(self, **options: Any) -> None:
        run(argparse.Namespace(**options))
