from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.checks.registry import registry
from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS

from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.queue import queue_of_rq_name, rq_name
from orchestrator.workers import connections
from orchestrator.workers.supervisor import supervise, wait_for_database

SITE_TAGS = {Tags.admin, Tags.security, Tags.staticfiles, Tags.templates, Tags.urls}
"""Tags of the checks that import every page: a worker has no pages, and would start more slowly."""


def worker_check_tags() -> list[str]:
    """Return the tags of the system checks that hold for workers."""
    return sorted(registry.tags_available() - SITE_TAGS)


class Command(ProcessionCommand):
    help = "Runs the worker processes of one queue until SIGTERM or Ctrl-C."
    requires_system_checks = ()  # they ask the database, which may not be there yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--processes", type=int, default=2, help="how many workers")
        parser.add_argument(
            "--queue", default=DEFAULT_QUEUE, help="the queue whose work they run"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        queue = queue_of_rq_name(options["queue"])
        if rq_name(queue) not in (known := sorted(settings.RQ_QUEUES)):
            raise CommandError(
                f"RQ_QUEUES has no queue {options['queue']!r}; it has {', '.join(known)}"
            )
        connections.limit_connections()
        wait_for_database()
        # A changed definition with live instances stops here.
        self.check(tags=worker_check_tags(), databases=[DEFAULT_DB_ALIAS])
        supervise(queue, max(options["processes"], 1))
