from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator.models.work import WithText, Work, person_column


class BulkStatus(models.TextChoices):
    """The progress of a bulk operation."""

    GATHERING = "gathering", _("gathering")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    STOPPED = "stopped", _("stopped")
    CANCELLED = "cancelled", _("cancelled")
    COMPLETED = "completed", _("completed")


GOING_ON = (BulkStatus.GATHERING, BulkStatus.RUNNING)
HALTED = (BulkStatus.PAUSED, BulkStatus.STOPPED)


class BulkOperationQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of bulk operations."""

    def open(self) -> Self:
        """Return the operations that go on or can be resumed."""
        return self.filter(status__in=[*GOING_ON, *HALTED])


class BulkOperation(Work):
    """One action on many processes or events: its frozen items, its pace and its progress.

    `tried` counts the items whose action was done and whose outcome is unknown yet. The other numbers never go down.
    """

    english = "detail"

    id = models.UUIDField(
        _("operation id"), primary_key=True, default=uuid7, editable=False
    )
    key = models.UUIDField(_("idempotency key"), unique=True)
    action = models.CharField(_("action"), max_length=30)
    given = models.JSONField(_("what the action is told"), default=list)
    actor = person_column(_("actor"), null=True, related_name=None)
    actor_name = models.CharField(_("actor name"), max_length=150)
    address = models.GenericIPAddressField(_("from"), null=True, blank=True)
    reason = models.TextField(_("reason"))
    again_of = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="again",
        verbose_name=_("once more for"),
    )
    # The selected processes
    selection = models.CharField(_("kind of selection"), max_length=30)
    about = models.JSONField(_("selection"), default=dict)
    shown = models.PositiveIntegerField(_("shown when pressed"), default=0)
    exact = models.BooleanField(_("all were counted"), default=True)
    shown_at = models.DateTimeField(_("shown at"))
    cursor = models.CharField(_("gathered up to"), max_length=200, blank=True)
    definitions = models.JSONField(_("of these definitions alone"), null=True)
    # The database has the default too: running code of an earlier release writes operations without the column.
    left_out = models.PositiveIntegerField(
        _("left out, of other definitions"), default=0, db_default=0
    )
    # How fast
    samples = models.JSONField(_("sizes of samples"), default=list)
    batch = models.PositiveIntegerField(_("most under way at once"))
    rate = models.FloatField(_("most a second"), null=True, blank=True)
    per_key = models.PositiveIntegerField(
        _("most at once with one business key"), null=True, blank=True
    )
    stop_above = models.FloatField(
        _("stops above so many percent failed"), null=True, blank=True
    )
    paced_at = models.DateTimeField(_("paced from"), null=True, blank=True)
    # How far
    status = models.CharField(
        _("status"), max_length=10, choices=BulkStatus, default=BulkStatus.GATHERING
    )
    detail = models.CharField(_("why"), max_length=500, blank=True)
    revision = models.PositiveIntegerField(_("revision"), default=0)
    total = models.PositiveIntegerField(_("frozen"), default=0)
    tried = models.PositiveIntegerField(_("under way"), default=0)
    done = models.PositiveIntegerField(_("done"), default=0)
    failed = models.PositiveIntegerField(_("failed again"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    refused = models.PositiveIntegerField(_("refused"), default=0)
    done_before = models.PositiveIntegerField(_("done before resumed"), default=0)
    failed_before = models.PositiveIntegerField(_("failed before resumed"), default=0)
    created_at = models.DateTimeField(_("created at"))
    frozen_at = models.DateTimeField(_("frozen at"), null=True, blank=True)
    changed_at = models.DateTimeField(_("changed at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    items_removed_at = models.DateTimeField(
        _("items removed at"), null=True, blank=True
    )

    objects = BulkOperationQuerySet.as_manager()

    class Meta:
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        indexes = [
            models.Index(
                fields=["queue", "wake_at"],
                condition=Q(wake_at__isnull=False),
                name="due_bulk_operations",
            ),
            models.Index(
                fields=["-id"],
                condition=Q(status__in=["gathering", "running", "paused", "stopped"]),
                name="open_bulk_operations",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.pk}"

    @property
    def settled(self) -> int:
        """The number of items with their last verdict."""
        return self.done + self.failed + self.skipped + self.refused

    @property
    def waiting(self) -> int:
        """The number of items that wait for their action."""
        return self.total - self.settled - self.tried


class BulkVerdict(models.TextChoices):
    """The outcome of one item."""

    WAITING = "waiting", _("waits for its turn")
    TRIED = "tried", _("under way")
    DONE = "done", _("done")
    FAILED = "failed", _("failed again")
    SKIPPED = "skipped", _("skipped, it had changed")
    REFUSED = "refused", _("refused")


class BulkItem(WithText):
    """One process or event of a bulk operation, and its verdict.

    The row has no foreign key to it, so the verdict stays after the process or event is removed.
    """

    english = "detail"

    operation = models.ForeignKey(
        BulkOperation,
        models.CASCADE,
        db_index=False,
        related_name="items",
        verbose_name=_("bulk operation"),
    )
    process_id = models.UUIDField(_("process id"), null=True)
    event_id = models.BigIntegerField(_("event"), null=True)
    revision = models.PositiveIntegerField(_("revision seen"), null=True)
    key = models.CharField(_("correlation key"), max_length=200, blank=True)
    verdict = models.CharField(
        _("verdict"), max_length=10, choices=BulkVerdict, default=BulkVerdict.WAITING
    )
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    tried_at = models.DateTimeField(_("tried at"), null=True)
    at = models.DateTimeField(_("settled at"), null=True)

    class Meta:
        verbose_name = _("item of a bulk operation")
        verbose_name_plural = _("items of bulk operations")
        constraints = [
            models.UniqueConstraint(
                fields=["operation", "process_id"],
                condition=Q(process_id__isnull=False),
                name="one_item_per_process",
            ),
            models.UniqueConstraint(
                fields=["operation", "event_id"],
                condition=Q(event_id__isnull=False),
                name="one_item_per_event",
            ),
        ]
        indexes = [
            models.Index(
                fields=["operation", "verdict", "id"], name="bulk_items_by_verdict"
            ),
            models.Index(fields=["operation", "id"], name="bulk_items"),
        ]

    def __str__(self) -> str:
        return str(self.target)

    @property
    def target(self) -> object:
        """The key of the process or event."""
        return self.process_id or self.event_id
