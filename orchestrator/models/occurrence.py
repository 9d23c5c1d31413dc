from django.db import models
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import WithText


class Occurrence(WithText):
    """Something for notices, stored with the change. It is deleted when the notices have it."""

    topics = models.CharField(_("topics"), max_length=60)
    """One or several topics, separated by spaces: a deadline may also escalate."""
    recipients = models.JSONField(_("recipients"), default=list, blank=True)
    """The names of recipients who get it whatever topics they subscribe to."""
    state = models.CharField(_("state"), max_length=10, blank=True)
    definition = models.CharField(_("definition name"), max_length=100, blank=True)
    process_id = models.UUIDField(_("process id"), null=True, blank=True)
    correlation_key = models.CharField(_("correlation key"), max_length=200, blank=True)
    step = models.CharField(_("step"), max_length=100, blank=True)
    queue = models.CharField(_("queue"), max_length=50, blank=True)
    kind = models.CharField(_("kind"), max_length=20, blank=True)
    error = models.CharField(_("type of the error"), max_length=200, blank=True)
    place = models.CharField(_("place in the code"), max_length=200, blank=True)
    message = models.CharField(_("message"), max_length=500, blank=True)
    fingerprint = models.CharField(_("cause fingerprint"), max_length=64, blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")

    def __str__(self) -> str:
        return f"{self.topics} {self.correlation_key or self.process_id or self.queue}"
