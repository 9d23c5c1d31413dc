from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.configuration.conf import conf


class WorkerQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of workers."""

    def alive(self, now: datetime) -> Self:
        """Return the workers with a recent heartbeat."""
        return self.filter(seen_at__gte=heartbeat_limit(now))

    def gone(self, supervisor: str, living: Collection[str], now: datetime) -> Self:
        """Return a supervisor's workers beside its living ones, and all workers without a recent heartbeat."""
        mine = Q(supervisor=supervisor) & ~Q(id__in=living)
        return self.filter(mine | Q(seen_at__lt=heartbeat_limit(now))).order_by("queue")


def heartbeat_limit(now: datetime) -> datetime:
    """Return the oldest heartbeat of a live worker, on a busy machine too. Older leases have run out."""
    seconds = max(conf().HEARTBEAT_SECONDS * 4, conf().LEASE_SECONDS)
    return now - timedelta(seconds=seconds)


class Worker(models.Model):
    """A live worker process. Its supervisor renews the row every few seconds. The id is new after each start."""

    id = models.CharField(_("worker"), primary_key=True, max_length=40)
    supervisor = models.CharField(_("supervisor"), max_length=40)
    host = models.CharField(_("host"), max_length=200)
    pid = models.PositiveIntegerField(_("process"))
    queue = models.CharField(_("queue"), max_length=50)
    started_at = models.DateTimeField(_("started at"))
    seen_at = models.DateTimeField(_("last heartbeat"))
    swept_at = models.DateTimeField(_("last sweep by its supervisor"), null=True)
    # The last time that its supervisor saw the database's clock go back.
    set_back_at = models.DateTimeField(
        _("clock went back at"), null=True, editable=False
    )
    set_back_from = models.DateTimeField(
        _("clock went back from"), null=True, editable=False
    )

    objects = WorkerQuerySet.as_manager()

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return f"{self.pid} on {self.host}"
