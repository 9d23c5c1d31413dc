from django.db import models
from django.utils.translation import gettext_lazy as _


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

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return f"{self.pid} on {self.host}"
