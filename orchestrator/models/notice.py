"""Notices, and their sources: occurrences and dead queues."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator.models.work import WithText


class NoticeStatus(models.TextChoices):
    """The progress of a notice."""

    GATHERING = "gathering", _("waits for its time")
    SENDING = "sending", _("being sent")
    SENT = "sent", _("sent")
    GIVEN_UP = "given_up", _("given up")


class NoticeQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of notices."""

    def open(self) -> Self:
        """Return the notices that are yet to be sent."""
        return self.filter(wake_at__isnull=False)

    def given_up_since(self, at: datetime) -> Self:
        """Return the notices that were given up at a moment or later."""
        return self.filter(settled_at__gte=at, status=NoticeStatus.GIVEN_UP)


class Notice(models.Model):
    """A message to one recipient and its delivery: an outbox and a log.

    Until its first attempt a notice takes in further occurrences. Then it never changes, and a recipient recognizes a
    repeated delivery by its id.
    """

    id = models.UUIDField(
        _("notice id"), primary_key=True, default=uuid7, editable=False
    )
    recipient = models.CharField(_("recipient"), max_length=50)
    counts = models.JSONField(_("how much it tells, by topic"), default=dict)
    items = models.JSONField(_("the first of it"), default=list)
    # The engine's words in the items, by their English: items have the English alone, as earlier releases read it.
    texts = models.JSONField(
        _("text as template and values"), default=dict, db_default={}, editable=False
    )
    status = models.CharField(
        _("status"), max_length=10, choices=NoticeStatus, default=NoticeStatus.GATHERING
    )
    wake_at = models.DateTimeField(_("due"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempts"), default=0)
    owner = models.CharField(_("sent by"), max_length=40, blank=True, editable=False)
    error = models.CharField(_("error"), max_length=500, blank=True)
    created_at = models.DateTimeField(_("created at"))
    begun_at = models.DateTimeField(_("first attempt"), null=True, blank=True)
    settled_at = models.DateTimeField(_("settled at"), null=True, blank=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        constraints = [
            models.UniqueConstraint(
                fields=["recipient"],
                condition=Q(status="gathering"),
                name="one_gathering_notice",
            )
        ]
        indexes = [
            # The notices to be sent.
            models.Index(
                fields=["wake_at"],
                condition=Q(wake_at__isnull=False),
                name="due_notices",
            ),
            # The last notice to each recipient.
            models.Index(fields=["recipient", "-id"], name="notices_by_recipient"),
            # The settled notices, for pruning.
            models.Index(
                fields=["settled_at"],
                condition=Q(settled_at__isnull=False),
                name="settled_notices",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.recipient} {self.pk}"

    @property
    def number(self) -> int:
        """The number of its occurrences."""
        return sum(self.counts.values())


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
