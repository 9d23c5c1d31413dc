import signal
from typing import Any

from django.core.management.base import CommandError, CommandParser

from orchestrator.engine.storage.batch import database_now
from orchestrator.management.commands.work import tags_of_workers
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.models import Notice
from orchestrator.notice_settings import Topic, recipients
from orchestrator.workers import connections
from orchestrator.workers.notifier import Notifier
from orchestrator.workers.sending import attempt

NOBODY = "Nobody is to be told: PROCESSION_NOTICES is empty."


class Command(ProcessionCommand):
    help = (
        "Tells people what the settings say, until SIGTERM or Ctrl-C. Workers do it too; beside the web server this "
        "goes on when all of them are gone."
    )
    requires_system_checks = ()  # they ask the database, which may not be there yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--try",
            dest="try_out",
            action="store_true",
            help="send everybody a notice to see whether it arrives, and end",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not recipients():
            raise CommandError(NOBODY)
        self.check(tags=tags_of_workers())
        if options["try_out"]:
            if self.try_out():
                raise SystemExit(1)
            return
        connections.limit()
        stopped = list[int]()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: stopped.append(number))
        Notifier().run(lambda: bool(stopped))

    def try_out(self) -> int:
        """Sends everybody something; how many did not get it."""
        failed = 0
        for name, recipient in recipients().items():
            at = database_now()
            notice = Notice(recipient=name, created_at=at)
            notice.counts = {recipient.about[0]: 1}
            notice.items = [sample(recipient.about[0], at.isoformat())]
            outcome = attempt(notice, recipient)
            failed += bool(outcome.error)
            said = f"not told: {outcome.error}" if outcome.error else "told"
            self.stdout.write(f"{name}  {said}")
        return failed


def sample(topic: Topic, at: str) -> dict[str, Any]:
    """Return an invented thing that has happened."""
    empty = ("process_id", "kind", "error", "place", "fingerprint")
    return {
        **dict.fromkeys(empty, ""),
        "topics": [str(topic)],
        "state": "new",
        "definition": "example",
        "correlation_key": "E-1",
        "step": "Trying",
        "queue": "example",
        "message": "this is only to see whether it arrives",
        "number": 1,
        "at": at,
    }
