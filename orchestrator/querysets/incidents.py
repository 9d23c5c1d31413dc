from typing import Self

from django.db import models


class IncidentQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model imports it
    """Named queries on incidents."""

    def open(self) -> Self:
        """Those whose cause is still there."""
        return self.filter(resolved_at__isnull=True)

    def needing_a_person(self) -> Self:
        """Open and not yet marked as handled."""
        return self.open().filter(handled_at__isnull=True)
