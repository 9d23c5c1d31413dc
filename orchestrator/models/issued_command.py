from collections import Counter
from collections.abc import Iterable
from typing import Self
from uuid import UUID, uuid5

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import Work, claim_indexes


class Delivery(models.TextChoices):
    """The moment at which a command's handler runs."""

    IN_TRANSACTION = "in_transaction", _("in the transition's transaction")
    AFTER_COMMIT = "after_commit", _("after commit")
    REACTION = "reaction", _("simple event handler")


class CommandStatus(models.TextChoices):
    READY = "ready", _("ready")
    HELD = "held", _("held")
    RUNNING = "running", _("running")
    RETRYING = "retrying", _("retrying")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    SKIPPED = "skipped", _("skipped")


def command_id(process_id: UUID, revision: int, place: int) -> UUID:
    """Return the id of a transition's command, the same for a repeated transition. `place` counts from 0."""
    return uuid5(process_id, f"{revision}:{place}")


class IssuedCommandQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of commands."""

    def failing(self) -> Self:
        """Return the commands that have failed, or wait for another attempt."""
        # SQLite finds the partial index only by this condition with literals, not by one with parameters.
        said = "status IN ('failed', 'retrying')"
        return self.filter(RawSQL(said, [], output_field=models.BooleanField()))  # noqa: S611  # a constant


class IssuedCommand(Work):
    """A command of a transition: a log of commands carried out in the commit, an outbox of the others.

    The id is made from process, revision and position, so that a repeated transition issues the same command. Handlers
    get it as the idempotency key. A held command waits for the command before it, whose `holds` has its id.
    """

    SETTLED = (CommandStatus.DONE, CommandStatus.SKIPPED)
    """The statuses for which the next command of a transition waits."""

    FAILING = (CommandStatus.FAILED, CommandStatus.RETRYING)

    @property
    def is_failing(self) -> bool:
        """Whether it has failed, waits for another attempt, or is set aside until the running code can carry it out."""
        aside = self.status == CommandStatus.READY and bool(self.error)
        return aside or self.status in self.FAILING

    UNDER_WAY = (CommandStatus.READY, CommandStatus.RUNNING, CommandStatus.RETRYING)
    """The statuses of commands that a worker will carry out."""

    id = models.UUIDField(_("command id"), primary_key=True)
    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        null=True,  # for a reaction to an event without a process
        db_index=False,  # commands_of_instance begins with it
        blank=True,
        related_name="commands",
    )
    revision = models.PositiveIntegerField(_("revision"), default=0)
    type = models.CharField(_("type"), max_length=100)
    body = models.JSONField(_("body"))
    delivery = models.CharField(_("delivery"), max_length=15, choices=Delivery)
    status = models.CharField(_("status"), max_length=10, choices=CommandStatus)
    holds = models.UUIDField(
        _("command that waits for it"), null=True, blank=True, editable=False
    )
    line = models.CharField(
        _("line of its reaction"),
        max_length=200,
        blank=True,
        editable=False,
        db_default="",
        default="",
    )
    """The process id or the key of a reaction's event: one reaction after the other; "" for no order."""
    answer = models.CharField(_("answer"), max_length=200, blank=True)
    follow_ups = models.PositiveIntegerField(
        _("events that it caused"), null=True, blank=True, editable=False
    )
    error = models.TextField(_("error"), blank=True)
    issued_at = models.DateTimeField(_("issued at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    objects = IssuedCommandQuerySet.as_manager()

    class Meta:
        verbose_name = _("command")
        verbose_name_plural = _("commands")
        indexes = [
            *claim_indexes("due_commands", "held_commands"),
            # The history of one process.
            models.Index(fields=["instance", "revision"], name="commands_of_instance"),
            # The failing commands of one process, among many done ones.
            models.Index(
                fields=["instance"],
                condition=Q(status__in=["failed", "retrying"]),
                name="failing_commands",
            ),
            # The unsettled reactions of one line, in the order of their events.
            models.Index(
                fields=["type", "line", "issued_at", "id"],
                condition=Q(wake_at__isnull=False) & ~Q(line=""),
                name="reactions_in_line",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


def in_issue_order(issued: Iterable[IssuedCommand]) -> list[IssuedCommand]:
    """Return the commands of processes by transition, and those of a transition in the order written in its row."""
    rows = list(issued)
    numbers = Counter((row.instance_id, row.revision) for row in rows)
    places = {
        command_id(process_id, revision, place): place
        for (process_id, revision), number in numbers.items()
        if process_id is not None
        for place in range(number)
    }
    return sorted(rows, key=lambda row: (row.revision, places.get(row.pk, 0)))
