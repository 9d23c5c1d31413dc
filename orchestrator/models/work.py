from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class Work(models.Model):
    """What workers claim: an event, a command or a deadline.

    `wake_at` is the next moment the row wants a worker: now, after a backoff, at a deadline, or when the lease of the
    worker that holds it ends; null when nothing is left to do. The attempt is counted when the row is claimed.
    """

    queue = models.CharField(_("queue"), max_length=50, default="default")
    wake_at = models.DateTimeField(_("wakes at"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    owner = models.CharField(_("worker"), max_length=40, blank=True)

    class Meta:
        abstract = True

    @property
    def fence(self) -> dict[str, Any]:
        """The condition that this attempt still holds it: every write that settles work carries it."""
        return {"id": self.pk, "owner": self.owner, "attempt": self.attempt}
