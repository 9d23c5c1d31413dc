from django.db import models
from django.utils.translation import gettext_lazy as _

from orchestrator.models.incident import Incident
from orchestrator.models.work import WithText


class FailureGroup(WithText):
    """The failures of one cause. Recipients get a notice when the group is new, and when it has grown tenfold."""

    fingerprint = models.CharField(
        _("cause fingerprint"), primary_key=True, max_length=64
    )
    definition = models.CharField(_("definition name"), max_length=100, blank=True)
    step = models.CharField(_("step"), max_length=100, blank=True)
    kind = models.CharField(_("kind"), max_length=20, choices=Incident.Kind)
    error = models.CharField(_("type of the error"), max_length=200, blank=True)
    place = models.CharField(_("place in the code"), max_length=200, blank=True)
    message = models.CharField(_("message of the first"), max_length=500)
    number = models.PositiveBigIntegerField(_("failures"), default=0)
    lately = models.PositiveBigIntegerField(
        _("failures without a day between"), default=0
    )
    told = models.PositiveBigIntegerField(
        _("how many were told last"), default=0, editable=False
    )
    first_at = models.DateTimeField(_("first"))
    last_at = models.DateTimeField(_("last"), db_index=True)

    class Meta:
        verbose_name = _("group of failures")
        verbose_name_plural = _("groups of failures")

    def __str__(self) -> str:
        return self.message
