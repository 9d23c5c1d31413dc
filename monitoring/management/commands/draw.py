from typing import Any

from django.core.management.base import CommandParser

from monitoring.command_line.drawing import add_arguments, draw_definition
from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    """`draw order-listing --format svg`: the picture, its DOT, or a table of a definition or a process."""

    help = "Draws a definition or a process: as SVG, as DOT, or as a table in Markdown."

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        draw_definition(self.stdout, options)
