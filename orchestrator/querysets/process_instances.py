from typing import Self

from django.db import models


class ProcessInstanceQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model imports it
    """Named queries on process instances."""

    def live(self) -> Self:
        """Those that have not ended."""
        return self.filter(finished_at__isnull=True)

    def ended(self) -> Self:
        """Those that completed or were cancelled."""
        return self.filter(finished_at__isnull=False)

    def escalated(self) -> Self:
        """Live ones that somebody, or a deadline, escalated."""
        return self.live().filter(escalation_level__gt=0)
