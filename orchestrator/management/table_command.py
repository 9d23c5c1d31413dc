"""A management command that needs the tables, in any project."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from orchestrator.missing_tables import MIGRATE, lacks_tables


class TableCommand(BaseCommand):
    """Says in one line what to do when the tables are not there."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: there are no tables yet.
        """
        try:
            return super().execute(*args, **options)
        except DatabaseError as error:
            if not lacks_tables(error):
                raise
            raise CommandError(MIGRATE) from None
