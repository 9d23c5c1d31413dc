import signal
from typing import Any

from django.core.management.base import CommandError, CommandParser

from orchestrator.configuration.notice_settings import Topic, recipients
from orchestrator.engine.sql.batch import database_now
from orchestrator.management.commands.work import worker_check_tags
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.models import Notice
from orchestrator.workers import connections
from orchestrator.workers.notifier import Notifier
from orchestrator.workers.send_attempt import send_notice

NO_RECIPIENTS = "PROCESSION_NOTICES has no recipients."


class Command(ProcessionCommand):
    help = (
        "Sends notices to the recipients in the settings, until SIGTERM or Ctrl-C. Workers do it too; run it beside "
        "the web server to be told when all workers are gone."
    )
    requires_system_checks = ()  # they ask the database, which may not be there yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--try",
            dest="try_out",
            action="store_true",
            help="send every recipient a test notice, and end",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not recipients():
            raise CommandError(NO_RECIPIENTS)
        self.check(tags=worker_check_tags())
        if options["try_out"]:
            if self.try_out():
                raise SystemExit(1)
            return
        connections.limit_connections()
        stopped = list[int]()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: stopped.append(number))
        Notifier().run(lambda: bool(stopped))

    def try_out(self) -> int:
        """Send each recipient a notice; return how many did not get it."""
        failed = 0
        for name, recipient in recipients().items():
            at = database_now()
            notice = Notice(recipient=name, created_at=at)
            notice.counts = {recipient.about[0]: 1}
            notice.items = [sample_item(recipient.about[0], at.isoformat())]
            outcome = send_notice(notice, recipient)
            failed += bool(outcome.error)
            said = f"not told: {outcome.error}" if outcome.error else "told"
            self.stdout.write(f"{name}  {said}")
        return failed


def sample_item(topic: Topic, at: str) -> dict[str, Any]:
    """Return an invented occurrence."""
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
