from django.db import models
from django.utils.translation import gettext_lazy as _


class QueueOutage(models.Model):
    """A queue with due work and without a live worker. The row is deleted when the outage ends."""

    queue = models.CharField(_("queue"), primary_key=True, max_length=50)
    since = models.DateTimeField(_("since"))
    seen_at = models.DateTimeField(_("last seen"))
    told_at = models.DateTimeField(_("told at"), null=True, blank=True)

    class Meta:
        verbose_name = _("dead queue")
        verbose_name_plural = _("dead queues")

    def __str__(self) -> str:
        return self.queue
