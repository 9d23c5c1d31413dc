from typing import Self

from django.db import models

PROBLEMS = ("unexpected", "unrouted", "rejected", "failed")


class InboxEventQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model imports it
    """Named queries on inbox events."""

    def needing_a_person(self) -> Self:
        """Those that no process took: unexpected, unrouted, rejected or failed."""
        return self.filter(verdict__in=PROBLEMS)

    def parked(self) -> Self:
        """Those that wait for their process to reach a step that takes them."""
        return self.filter(verdict="parked")
