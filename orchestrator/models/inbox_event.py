from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import Work, claimed


class Verdict(models.TextChoices):
    """What became of an event."""

    RECEIVED = "received", _("received")
    STARTED = "started", _("started a process")
    MOVED = "moved", _("moved a process")
    REACTED = "reacted", _("handled by event handlers")
    PARKED = "parked", _("parked")
    IGNORED = "ignored", _("ignored")
    REJECTED = "rejected", _("rejected")
    UNEXPECTED = "unexpected", _("unexpected")
    UNROUTED = "unrouted", _("no such process")
    FAILED = "failed", _("failed")
    DISCARDED = "discarded", _("discarded")


PROBLEMS = ("unexpected", "unrouted", "rejected", "failed")

UNDECIDED = Q(wake_at__isnull=False, handled_at__isnull=True)
"""Received, running, between attempts, or offered again: what holds back the later events of its process."""


KEPT = Q(verdict__in=["parked", "unrouted", "unexpected", "rejected", "failed"])
"""Those that wait for a process or a step, and those shown to operators."""

OVERDUE = Q(verdict="parked", patience_until__lte=Now())
"""Parked beyond its patience."""


class InboxEventQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Named queries on inbox events."""

    def needing_a_person(self) -> Self:
        """Those that no process took: unexpected, unrouted, rejected, failed, or parked beyond their patience."""
        return self.filter(Q(verdict__in=PROBLEMS) | OVERDUE)

    def overdue(self) -> Self:
        """Those parked beyond their patience."""
        return self.filter(OVERDUE)

    def parked(self) -> Self:
        """Those that wait for their process to reach a step that takes them."""
        return self.filter(verdict="parked")


class InboxEvent(Work):
    """An event as it was received, and its verdict. One row a receipt and target; none is ever dropped.

    A repeat of the same source and event id adds no row: it is counted in `repeats` and given the first receipt again.
    `handled_at` is the time of its verdict; it is null as long as the event is undecided, also when one that was parked
    is offered again.
    """

    id: models.BigAutoField[int, int]
    source = models.CharField(_("source"), max_length=100)
    event_id = models.CharField(_("event id"), max_length=200)
    target = models.CharField(_("addressed to"), max_length=100, blank=True)
    type = models.CharField(_("type"), max_length=100)
    body = models.JSONField(_("body"))
    body_hash = models.CharField(_("body hash"), max_length=64)
    process = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.DO_NOTHING,
        db_constraint=False,  # an event may come before its process
        db_index=False,  # events_of_process begins with it
        null=True,
        blank=True,
        related_name="events",
        verbose_name=_("process"),
    )
    correlation_key = models.CharField(_("correlation key"), max_length=200, blank=True)
    starts = models.BooleanField(_("starts its process"), default=False)
    verdict = models.CharField(
        _("verdict"), max_length=10, choices=Verdict, default=Verdict.RECEIVED
    )
    error = models.TextField(_("error"), blank=True)
    patience_until = models.DateTimeField(_("kept until"), null=True, blank=True)
    revision = models.PositiveIntegerField(
        _("revision it led to"), null=True, blank=True
    )
    caused_by = models.ForeignKey(
        "orchestrator.IssuedCommand",
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        blank=True,
        related_name="caused",
        verbose_name=_("caused by command"),
    )
    repeats = models.PositiveIntegerField(_("repeats"), default=0)
    remaining = models.DurationField(
        _("left until it wakes when its process goes on"), null=True, blank=True
    )
    received_at = models.DateTimeField(_("received at"))
    handled_at = models.DateTimeField(_("handled at"), null=True, blank=True)

    objects = InboxEventQuerySet.as_manager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        permissions = [("send_inboxevent", _("Can send an event"))]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "event_id", "target"], name="one_row_per_receipt"
            )
        ]
        indexes = [
            *claimed("due_events", "held_events"),
            # Which older events of the same process are still undecided: by its id, and by its key.
            models.Index(
                fields=["process", "id"],
                condition=UNDECIDED,
                name="undecided_of_process",
            ),
            models.Index(
                fields=["target", "correlation_key", "id"],
                condition=UNDECIDED & ~Q(correlation_key=""),
                name="undecided_of_key",
            ),
            # The oldest parked event of a type that a step takes.
            models.Index(
                fields=["process", "type", "id"],
                condition=Q(verdict="parked"),
                name="parked_of_process",
            ),
            # The events of one process, in the order received.
            models.Index(fields=["process", "id"], name="events_of_process"),
            # Events that wait for a process or a step, and those shown to operators.
            models.Index(
                fields=["verdict", "patience_until"],
                condition=KEPT,
                name="kept_events",
            ),
            # The same, newest first.
            models.Index(
                fields=["verdict", "-id"],
                condition=KEPT,
                name="kept_newest_first",
            ),
            # A starting process looks for events of its key that came early.
            models.Index(
                fields=["target", "correlation_key"],
                condition=Q(verdict="unrouted"),
                name="unrouted_by_key",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id} from {self.source}"
