from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import WithText
from orchestrator.text import Text


class IncidentQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of incidents."""

    def open(self) -> Self:
        """Return the incidents whose cause is still there."""
        return self.filter(resolved_at__isnull=True)


class Incident(WithText):
    """A problem that needs a person. The engine resolves it when its cause is gone."""

    class Kind(models.TextChoices):
        EVENT_FAILED = "event_failed", _("event could not be handled")
        COMMAND_FAILED = "command_failed", _("command failed")
        DEADLINE_FAILED = "deadline_failed", _("deadline could not be handled")
        STEP_FAILED = "step_failed", _("step failed")
        UNEXPECTED_EVENT = "unexpected_event", _("unexpected event")
        REJECTED_EVENT = "rejected_event", _("rejected event")
        UNROUTED_EVENT = "unrouted_event", _("event without a process")
        HANDLER_MISSING = "handler_missing", _("handler missing")
        CORRUPTED_DATA = "corrupted_data", _("corrupted data")

    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="incidents",
    )
    event = models.ForeignKey(
        "orchestrator.InboxEvent",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="incidents",
    )
    command = models.ForeignKey(
        "orchestrator.IssuedCommand",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="incidents",
    )
    step_run = models.ForeignKey(
        "orchestrator.StepRun",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="incidents",
    )
    step = models.CharField(_("step"), max_length=100, blank=True)
    message = models.CharField(_("message"), max_length=500)
    detail = models.TextField(_("detail"), blank=True)
    fingerprint = models.CharField(_("cause fingerprint"), max_length=64, db_index=True)
    # The database has the default too: running code of an earlier release writes incidents without the column.
    error = models.CharField(
        _("type of the error"), max_length=200, blank=True, default="", db_default=""
    )
    place = models.CharField(
        _("place in the code"), max_length=200, blank=True, default="", db_default=""
    )
    opened_at = models.DateTimeField(_("opened at"))
    resolved_at = models.DateTimeField(_("resolved at"), null=True, blank=True)
    resolution = models.CharField(_("resolved by"), max_length=100, blank=True)

    objects = IncidentQuerySet.as_manager()

    class Meta:
        verbose_name = _("incident")
        verbose_name_plural = _("incidents")
        indexes = [
            # The open incidents, newest first.
            models.Index(
                fields=["-id"],
                condition=Q(resolved_at__isnull=True),
                name="open_incidents",
            ),
            # The open incidents by cause: the groups, their sizes and their newest incidents.
            models.Index(
                fields=["fingerprint", "-id"],
                condition=Q(resolved_at__isnull=True),
                name="open_incidents_by_cause",
            ),
            # The resolved incidents, the last resolved first.
            models.Index(
                fields=["-resolved_at", "-id"],
                condition=Q(resolved_at__isnull=False),
                name="resolved_incidents",
            ),
        ]

    def __str__(self) -> str:
        return self.message

    @property
    def resolved_by(self) -> str:
        """The resolution of the incident, as a `Text` without values."""
        return Text(self.resolution) if self.resolution else ""
