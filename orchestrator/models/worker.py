from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.conf import conf


class WorkerQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Named queries on workers."""

    def alive(self, now: datetime) -> Self:
        """Those whose supervisor has said lately that they live."""
        return self.filter(seen_at__gte=lately(now))

    def gone(self, supervisor: str, living: Collection[str], now: datetime) -> Self:
        """Those that a supervisor does not count among its living ones, and all whose supervisor has fallen silent."""
        mine = Q(supervisor=supervisor) & ~Q(id__in=living)
        return self.filter(mine | Q(seen_at__lt=lately(now))).order_by("queue")


def lately(now: datetime) -> datetime:
    """When a supervisor that lives has been heard of, though its machine be busy; leases have run out by then too."""
    seconds = max(conf().HEARTBEAT_SECONDS * 4, conf().LEASE_SECONDS)
    return now - timedelta(seconds=seconds)


class Worker(models.Model):
    """A worker process that is alive, as its supervisor says every few seconds. The id is random for each boot."""

    id = models.CharField(_("worker"), primary_key=True, max_length=40)
    supervisor = models.CharField(_("supervisor"), max_length=40)
    host = models.CharField(_("host"), max_length=200)
    pid = models.PositiveIntegerField(_("process"))
    queue = models.CharField(_("queue"), max_length=50)
    started_at = models.DateTimeField(_("started at"))
    seen_at = models.DateTimeField(_("last heartbeat"))
    swept_at = models.DateTimeField(_("last sweep by its supervisor"), null=True)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return f"{self.pid} on {self.host}"
