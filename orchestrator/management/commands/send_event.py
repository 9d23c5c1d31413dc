import sys
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError, CommandParser

from orchestrator import registry, strict_json
from orchestrator.engine.processes import send_event
from orchestrator.exceptions import InvalidMessage, ProcessionError, UnknownEventType
from orchestrator.management.table_command import TableCommand


class Command(TableCommand):
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
            "--id", default="", help="the sender's id of the event; made up when absent"
        )
        parser.add_argument("--source", default="command line", help="who sends it")
        parser.add_argument("--process", help="the process id it is for")
        parser.add_argument("--key", default="", help="the correlation key it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        raw = (
            sys.stdin.buffer.read()
            if options["data"] == "-"
            else _bytes(options["data"])
        )
        try:
            data = strict_json.parse(raw)
            if not isinstance(data, dict):
                raise InvalidMessage("the data must be a JSON object")
            receipt = send_event(
                options["type"],
                data,
                id=options["id"] or str(uuid4()),
                source=options["source"],
                process_id=options["process"],
                correlation_key=options["key"],
            )
        except UnknownEventType as error:
            raise CommandError(
                f"not sent: {error}; {_instead(options['type'])}"
            ) from None
        except ProcessionError as error:
            raise CommandError(f"not sent: {error}") from None
        again = ", received before" if receipt.repeated else ""
        self.stdout.write(f"receipt {receipt.number}: {receipt.verdict}{again}")


def _instead(name: str) -> str:
    if similar := registry.resembling(name):
        return f"did you mean {similar}?"
    return "PROCESSION_APPS (INSTALLED_APPS in settings of your own) names the apps that are looked into"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
