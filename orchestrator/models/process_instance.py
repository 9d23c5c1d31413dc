"""Processes, with their checkpoints and outside ids."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator.models.cause import Cause
from orchestrator.models.work import person_column, process_start_column


class Status(models.TextChoices):
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting")
    RETRYING = "retrying", _("retrying")
    FAILED = "failed", _("failed")
    PAUSED = "paused", _("paused")
    COMPLETED = "completed", _("completed")
    CANCELLED = "cancelled", _("cancelled")


ENDED = (Status.COMPLETED, Status.CANCELLED)
LIVE = tuple(status for status in Status if status not in ENDED)

NEWEST_FIRST = ("-started_at", "-pk")
"""The order of lists of processes. Their ids alone do not tell it: an id that was given to a start has no time."""


class ProcessInstanceQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of process instances."""

    def newest_first(self) -> Self:
        """Return the processes by their starts, the newest first."""
        return self.order_by(*NEWEST_FIRST)

    def live(self) -> Self:
        """Return the processes that have not ended."""
        return self.filter(finished_at__isnull=True)

    def live_on(self, definition: int) -> Self:
        """Return the live processes on one stored definition."""
        return self.live().filter(definition=definition)

    def ended(self) -> Self:
        """Return the processes that have completed or were cancelled."""
        return self.filter(finished_at__isnull=False)

    def escalated(self) -> Self:
        """Return the live processes that a person or a deadline has escalated."""
        return self.live().filter(escalation_level__gt=0)


class ProcessInstance(models.Model):
    """One run of a definition. `revision` counts its transitions."""

    id = models.UUIDField(
        _("process id"), primary_key=True, default=uuid7, editable=False
    )
    definition = models.ForeignKey(
        "orchestrator.Definition",
        models.PROTECT,
        db_index=False,
        verbose_name=_("definition"),
    )
    name = models.CharField(_("definition name"), max_length=100)
    correlation_key = models.CharField(_("correlation key"), max_length=200, blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status)
    step = models.CharField(_("current step"), max_length=100, blank=True)
    data = models.JSONField(_("data"), default=dict)
    revision = models.PositiveIntegerField(_("revision"), default=0)
    open_steps = models.PositiveIntegerField(_("open steps"), default=0)
    parked = models.PositiveIntegerField(_("parked events"), default=0)
    parent = models.ForeignKey(
        "self",
        models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="children",
    )
    summary = models.CharField(_("summary"), max_length=200, blank=True)
    owner = person_column(_("owner"), null=True, blank=True, related_name=None)
    escalation_level = models.PositiveSmallIntegerField(
        _("escalation level"), default=0
    )
    escalated_at = models.DateTimeField(_("escalated at"), null=True, blank=True)
    paused_at = models.DateTimeField(_("paused at"), null=True, blank=True)
    started_at = models.DateTimeField(_("started at"))
    changed_at = models.DateTimeField(_("changed at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    objects = ProcessInstanceQuerySet.as_manager()

    class Meta:
        verbose_name = _("process instance")
        verbose_name_plural = _("process instances")
        constraints = [
            models.UniqueConstraint(
                fields=["name", "correlation_key"],
                condition=Q(finished_at__isnull=True) & ~Q(correlation_key=""),
                name="one_live_process_per_key",
            )
        ]
        indexes = [
            # The list of one definition, newest first.
            models.Index(fields=["name", "-started_at", "-id"], name="starts_of_name"),
            # The list of all, newest first.
            models.Index(fields=["-started_at", "-id"], name="newest_instances"),
            # Counts and lists of live processes, of one definition and of all. The step is not indexed: most
            # transitions change no indexed column, so PostgreSQL can update the row in place (HOT).
            models.Index(
                fields=["name", "status", "-started_at", "-id"],
                condition=Q(finished_at__isnull=True),
                name="live_of_name",
            ),
            models.Index(
                fields=["status", "-started_at", "-id"],
                condition=Q(finished_at__isnull=True),
                name="live_of_status",
            ),
            # The live processes on one version.
            models.Index(
                fields=["definition", "status", "-started_at", "-id"],
                condition=Q(finished_at__isnull=True),
                name="live_of_definition",
            ),
            # The starts of the first and the last process on one version.
            models.Index(
                fields=["definition", "started_at"], name="starts_of_definition"
            ),
            # The few cancelled processes among many completed ones.
            models.Index(
                fields=["-started_at", "-id"],
                condition=Q(status="cancelled"),
                name="newest_cancelled",
            ),
            models.Index(
                fields=["-started_at", "-id"],
                condition=Q(finished_at__isnull=True, escalation_level__gt=0),
                name="newest_escalated",
            ),
            # The sub-processes of one process, newest first, and the processes of one person.
            models.Index(
                fields=["parent", "-started_at", "-id"],
                condition=Q(parent__isnull=False),
                name="newest_of_parent",
            ),
            models.Index(
                fields=["owner", "-started_at", "-id"],
                condition=Q(owner__isnull=False),
                name="newest_of_owner",
            ),
            # The live processes of one person, among many ended ones.
            models.Index(
                fields=["owner", "-started_at", "-id"],
                condition=Q(finished_at__isnull=True, owner__isnull=False),
                name="live_of_owner",
            ),
            # The live and ended processes with a key, or with a prefix of it.
            models.Index(
                fields=["correlation_key", "name"],
                opclasses=["varchar_pattern_ops", "varchar_ops"],
                condition=~Q(correlation_key=""),
                name="instances_by_key",
            ),
        ]

    def __str__(self) -> str:
        return self.correlation_key or str(self.pk)


class Checkpoint(models.Model):
    """The state after one transition; append-only. `cause` is what moved the process, and is unique in each process.

    `edge` has the ids of the taken edges, separated by commas.
    """

    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # one_checkpoint_per_revision begins with it
        related_name="checkpoints",
    )
    revision = models.PositiveIntegerField(_("revision"))
    cause = models.CharField(_("cause"), max_length=100)
    edge = models.TextField(_("transition taken"), blank=True)
    steps = models.JSONField(_("current steps"))
    status = models.CharField(_("status"), max_length=10)
    data = models.JSONField(_("data"))
    checksum = models.CharField(_("checksum"), max_length=64)
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("checkpoint")
        verbose_name_plural = _("checkpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "revision"], name="one_checkpoint_per_revision"
            ),
            models.UniqueConstraint(
                fields=["instance", "cause"], name="one_checkpoint_per_cause"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} at revision {self.revision}"

    @property
    def moved_by(self) -> Cause | None:
        """The cause of the change; None for a kind that the running code does not know."""
        try:
            return Cause.parse(self.cause)
        except ValueError:
            return None

    @property
    def said(self) -> str:
        """The cause of the change, in words for people."""
        cause = self.moved_by
        return str(cause.kind.label) if cause is not None else gettext("A change")

    @property
    def step_run(self) -> int | None:
        """The key of the step run that moved the process; None for other causes."""
        return self.moved_by.step_run if self.moved_by is not None else None


class OutsideId(models.Model):
    """An outside id in the present data of a process; `field` is the field of the data."""

    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # outside_ids_of_process begins with it
        related_name="outside_ids",
    )
    field = models.CharField(_("field"), max_length=100)
    value = models.CharField(_("value"), max_length=200)
    process_started_at = process_start_column()

    class Meta:
        verbose_name = _("outside id")
        verbose_name_plural = _("outside ids")
        indexes = [
            # The processes with an outside id, newest first.
            models.Index(
                fields=["value", "-process_started_at", "-instance"],
                name="newest_by_outside_id",
            ),
            models.Index(
                fields=["instance", "field", "value"], name="outside_ids_of_process"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.field} {self.value}"
