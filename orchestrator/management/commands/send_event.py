import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.apps import AppConfig, apps
from django.core.management.base import CommandError, CommandParser

from orchestrator import registry, strict_json
from orchestrator.engine.processes.events import send_event
from orchestrator.exceptions import InvalidMessage, ProcessionError, UnknownEventType
from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    help = 'Sends an event: send_event OrderCreated \'{"order_id": "A-1"}\' --id web-1'

    requires_system_checks = ()  # they load every page, for a command that only stores

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("type", help="the event's type")
        parser.add_argument(
            "data",
            nargs="?",
            default="{}",
            help='its fields as JSON, "-" for standard input',
        )
        parser.add_argument(
            "--id", default="", help="the sender's id of the event; random if absent"
        )
        parser.add_argument("--source", default="command line", help="its sender")
        parser.add_argument("--process", help="the process id it is for")
        parser.add_argument("--key", default="", help="the correlation key it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            receipt = send_event(
                options["type"],
                _data(options["data"]),
                id=options["id"] or str(uuid4()),
                source=options["source"],
                process_id=options["process"],
                correlation_key=options["key"],
            )
        except UnknownEventType as error:
            raise CommandError(
                f"not sent: {error}; {_suggestion(options['type'])}"
            ) from None
        except ProcessionError as error:
            raise CommandError(f"not sent: {error}") from None
        again = ", received before" if receipt.repeated else ""
        self.stdout.write(f"receipt {receipt.number}: {receipt.verdict}{again}")


def _data(text: str) -> dict[str, Any]:
    raw = sys.stdin.buffer.read() if text == "-" else _bytes(text)
    data = strict_json.parse(raw)
    if not isinstance(data, dict):
        raise InvalidMessage("the data must be a JSON object")
    return data


def _suggestion(name: str) -> str:
    if similar := registry.similar_event_type(name):
        return f"did you mean {similar}?"
    looked_into = ", ".join(map(_describe, filter(_is_own, apps.get_app_configs())))
    return f"looked into: {looked_into or 'no app'}; {WHERE_NAMED}"


WHERE_NAMED = (
    "PROCESSION_APPS names the apps, or INSTALLED_APPS where the settings are your own"
)


def _is_own(app: AppConfig) -> bool:
    """Return whether an app may be meant to have processes: it has some, or is no package and not of Procession."""
    brought = {"site-packages", "dist-packages"} & set(Path(app.path).parts)
    return _declares(app) or not (brought or app.name in BUNDLED)


BUNDLED = ("orchestrator", "monitoring")


def _declares(app: AppConfig) -> bool:
    """Return whether any definition or handler is of this app."""
    handlers = [*registry.command_handlers.values(), *registry.reactions.values()]
    declared = [one.__module__ for one in registry.definitions.values()]
    declared += [one.function.__module__ for some in handlers for one in some]
    return any(f"{name}.".startswith(f"{app.name}.") for name in declared)


def _describe(app: AppConfig) -> str:
    """Return the name of an app, and what it lacks."""
    if _declares(app):
        return app.name
    wanted = ("processes", "handlers")
    there = [f"{one}.py" for one in wanted if f"{app.name}.{one}" in sys.modules]
    if not there:
        return f"{app.name} (it has no processes.py and no handlers.py)"
    return f"{app.name} (nothing is declared in its {' and '.join(there)})"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
