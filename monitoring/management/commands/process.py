from typing import Any

from django.core.management.base import CommandParser

from monitoring.command_line import acting, carrying, listing, showing, watching
from monitoring.command_line.terminal import Terminal
from orchestrator.management.procession_command import ProcessionCommand

PARTS: dict[str, tuple[Any, str]] = {
    "list": (listing, "Lists processes, the newest first."),
    "show": (showing, "Shows a process with its diagram."),
    "watch": (watching, "Tells each change of a process until it ends."),
    "retry": (acting, "Tries again what has failed in processes."),
    "cancel": (acting, "Cancels processes."),
    "escalate": (acting, "Escalates processes."),
    "pause": (acting, "Lets processes stand still."),
    "resume": (acting, "Lets paused processes go on."),
    "export": (carrying, "Writes a process with its history as lines of JSON."),
    "import": (carrying, "Stores what was exported elsewhere, paused."),
}

SHOWN = ("list", "show")
"""What is over when its reader has seen enough; of the others something is left to be done or to be told."""


class Command(ProcessionCommand):
    """`process list --status failed`: the console for terminals and scripts."""

    help = "Lists, shows and watches processes, and acts on them as a named user."

    requires_system_checks = ()  # they load every page, for a command that needs none

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
        for name, (part, told) in PARTS.items():
            add = getattr(part, f"add_arguments_of_{name}", None) or part.add_arguments
            add(parts.add_parser(name, help=told, description=told))

    def handle(self, *args: Any, **options: Any) -> None:
        part, _ = PARTS[options["what"]]
        if options["what"] in SHOWN:
            self.unread = 0
        if code := part.carry_out(Terminal(self.stdout), options):
            raise SystemExit(code)
