"""Incidents, the groups of failures of one cause, and the marks of these groups."""

from collections.abc import Sequence
from typing import Self

from django.db import models
from django.db.models import Case, OuterRef, Q, Subquery, When
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import WithText, definition_column, person_column
from orchestrator.text import Text

EVENT_KINDS = ("unexpected_event", "unrouted_event")
"""The kinds of incidents about events that no process took, where the incident has no process."""

ABOUT_EVENTS = Q(instance__isnull=True, kind__in=EVENT_KINDS)
"""Incidents about events that no process took. They belong to the events, and the lists of failures leave them out."""


class IncidentQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of incidents."""

    def open(self) -> Self:
        """Return the incidents whose cause is still there."""
        return self.filter(resolved_at__isnull=True)

    def failures(self) -> Self:
        """Return the incidents without those about events that no process took, which belong to the events."""
        return self.filter(~ABOUT_EVENTS)

    def without_code(self) -> Self:
        """Return the open incidents about the missing code of a visit."""
        about = {"kind": Incident.Kind.HANDLER_MISSING, "step_run__isnull": False}
        return self.open().filter(**about)

    def renamed(self, fingerprint: object) -> Self:
        """Return the open incidents to which an earlier release would have given this fingerprint, newest first."""
        own = {"earlier__range": (fingerprint, fingerprint), "earlier__gt": ""}
        return self.open().filter(**own).order_by("earlier", "-pk")


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
        HANDLER_MISSING = "handler_missing", _("code missing")
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
    # Of its process; null without one.
    stored_definition = definition_column()
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
    # The fingerprint that earlier releases gave such an incident, if it differs: their marks and links still lead here.
    earlier = models.CharField(
        _("earlier fingerprint"), max_length=64, blank=True, default="", db_default=""
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
            # The open failures, newest first, however many incidents are about events.
            models.Index(
                fields=["-id"],
                condition=Q(resolved_at__isnull=True) & ~ABOUT_EVENTS,
                name="open_failures",
            ),
            # The same by cause: the groups, and what lies between handled ones.
            models.Index(
                fields=["fingerprint", "-id"],
                condition=Q(resolved_at__isnull=True) & ~ABOUT_EVENTS,
                name="open_failures_by_cause",
            ),
            # The open incidents by the fingerprint of earlier releases.
            models.Index(
                fields=["earlier", "-id"],
                condition=Q(resolved_at__isnull=True),
                name="open_incidents_by_earlier",
            ),
            # The open incidents about the missing code of a visit, which is looked at now and then.
            models.Index(
                fields=["step_run"],
                condition=Q(
                    resolved_at__isnull=True,
                    kind="handler_missing",
                    step_run__isnull=False,
                ),
                name="visits_without_code",
            ),
            # The failures of steps in a recent window, for the map of a definition.
            models.Index(
                fields=["stored_definition", "opened_at"],
                condition=~Q(step=""),
                name="failures_of_definition",
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
    def is_about_event(self) -> bool:
        """Whether it is about an event that no process took, and belongs to the events."""
        return self.instance_id is None and self.kind in EVENT_KINDS

    @property
    def resolved_by(self) -> str:
        """The resolution of the incident, as a `Text` without values."""
        return Text(self.resolution) if self.resolution else ""


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


class FailureMarkQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of failure marks."""

    def handled(self) -> Self:
        """Return the marks of handled causes whose time is not over."""
        for_ever = Q(until__isnull=True)
        return self.filter(for_ever | Q(until__gt=Now()), handled_at__isnull=False)

    def of_causes(self, causes: Sequence[str]) -> Self:
        """Return the marks of these causes, their own last.

        A mark of an earlier fingerprint has the cause of its newest failure as `led_to`.
        """
        newest = Incident.objects.renamed(OuterRef("fingerprint"))
        led_to = Subquery(newest.values("fingerprint")[:1])
        used = Q(owner__isnull=False) | Q(handled_at__isnull=False)
        earlier, own = used & Q(led_to__in=causes), Q(pk__in=causes)
        found = self.annotate(led_to=led_to).filter(earlier | own)
        own_last = Case(When(own, then=1), default=0)
        return found.order_by(own_last, "changed_at", "pk")


class FailureMark(models.Model):
    """The mark of all failures of one cause: handled or not, and the owner.

    The list of failures leaves out a handled cause until the time is over, or until an incident is newer than `last`.
    A cause without a mark has the mark of its earlier fingerprint.
    """

    fingerprint = models.CharField(
        _("cause fingerprint"), primary_key=True, max_length=64
    )
    handled_at = models.DateTimeField(_("handled at"), null=True, blank=True)
    handled_by = models.CharField(_("handled by"), max_length=150, blank=True)
    note = models.TextField(_("note"), blank=True)
    until = models.DateTimeField(_("handled until"), null=True, blank=True)
    last = models.BigIntegerField(_("newest incident seen"), null=True, blank=True)
    owner = person_column(_("owner"), null=True, blank=True)
    revision = models.PositiveIntegerField(_("revision"), default=0)
    changed_at = models.DateTimeField(_("changed at"))

    objects = FailureMarkQuerySet.as_manager()

    class Meta:
        verbose_name = _("mark of a group of failures")
        verbose_name_plural = _("marks of groups of failures")
        indexes = [
            models.Index(
                fields=["fingerprint"],
                condition=Q(handled_at__isnull=False),
                name="handled_failures",
            )
        ]

    def __str__(self) -> str:
        return self.fingerprint
