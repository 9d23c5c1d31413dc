from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import Work, claim_indexes


class Verdict(models.TextChoices):
    """The outcome of an event."""

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
"""Received, running, between attempts, or offered again. Such an event holds back later events of its process."""

KEPT = Q(verdict__in=["parked", "unrouted", "unexpected", "rejected", "failed"])
"""Events that wait for a process or a step, and events for operators."""

OVERDUE = Q(verdict="parked", patience_until__lte=Now())
"""Parked beyond its patience."""


class InboxEventQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of inbox events."""

    def needing_a_person(self) -> Self:
        """Return the unexpected, unrouted, rejected and failed events, and those parked beyond their patience."""
        return self.filter(Q(verdict__in=PROBLEMS) | OVERDUE)

    def overdue(self) -> Self:
        """Return the events that are parked beyond their patience."""
        return self.filter(OVERDUE)

    def parked(self) -> Self:
        """Return the parked events."""
        return self.filter(verdict="parked")


class InboxEvent(Work):
    """A received event and its verdict. Each receipt has one row for each target.

    A repeat of the same source and event id adds no row: `repeats` counts it, and the sender gets the first receipt.
    `handled_at` is the time of the verdict. It is null while the event is undecided, also when a parked event is
    offered again.
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
            *claim_indexes("due_events", "held_events"),
            # The undecided older events of a process, by its id and by its key.
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
            # The oldest parked event of a type.
            models.Index(
                fields=["process", "type", "id"],
                condition=Q(verdict="parked"),
                name="parked_of_process",
            ),
            # The events of one process, in the order received.
            models.Index(fields=["process", "id"], name="events_of_process"),
            # The events of one type in a recent window, for their volume.
            models.Index(fields=["type", "received_at"], name="received_by_type"),
            # Events that wait for a process or a step, and events for operators.
            models.Index(
                fields=["verdict", "patience_until"], condition=KEPT, name="kept_events"
            ),
            # The same, newest first.
            models.Index(
                fields=["verdict", "-id"], condition=KEPT, name="kept_newest_first"
            ),
            # The early events with the key of a starting process.
            models.Index(
                fields=["target", "correlation_key"],
                condition=Q(verdict="unrouted"),
                name="unrouted_by_key",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id} from {self.source}"
