from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from monitoring.command_line import actions, listing, showing, transfer, watching
from monitoring.command_line.actions import act_on_processes
from monitoring.command_line.listing import list_processes
from monitoring.command_line.showing import show_process
from monitoring.command_line.terminal import Terminal
from monitoring.command_line.transfer import export_process, import_process
from monitoring.command_line.watching import watch_process
from orchestrator.management.procession_command import ProcessionCommand

PARTS: dict[str, tuple[Any, Callable[[Terminal, dict[str, Any]], int], str]] = {
    "list": (listing, list_processes, "Lists processes, the newest first."),
    "show": (showing, show_process, "Shows a process with its diagram."),
    "watch": (watching, watch_process, "Tells each change of a process until it ends."),
    "retry": (actions, act_on_processes, "Tries again what has failed in processes."),
    "cancel": (actions, act_on_processes, "Cancels processes."),
    "escalate": (actions, act_on_processes, "Escalates processes."),
    "pause": (actions, act_on_processes, "Pauses processes."),
    "resume": (actions, act_on_processes, "Resumes paused processes."),
    "export": (transfer, export_process, "Writes a process with its history as JSON."),
    "import": (transfer, import_process, "Stores an exported process, paused."),
}
"""The module with the arguments, the function and the help of each sub-command."""

SHOWN = ("list", "show")
"""The sub-commands that end without an error when their reader closes the pipe."""


class Command(ProcessionCommand):
    """`process list --status failed`: the console for terminals and scripts."""

    help = "Lists, shows and watches processes, and acts on them as a named user."

    requires_system_checks = ()  # they load every page, for a command that needs none

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
        for name, (part, _run, told) in PARTS.items():
            add = getattr(part, f"add_{name}_arguments", None) or part.add_arguments
            add(parts.add_parser(name, help=told, description=told))

    def handle(self, *args: Any, **options: Any) -> None:
        _part, run, _told = PARTS[options["what"]]
        if options["what"] in SHOWN:
            self.unread = 0
        if code := run(Terminal(self.stdout), options):
            raise SystemExit(code)
