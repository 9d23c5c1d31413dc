"""The facts that decide which actions are possible. One query reads each fact for all processes together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.storage.results import GIVEN
from orchestrator.models import (
    Blocked,
    Definition,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepKind,
    StepRun,
)
from orchestrator.text import Text

ENDED = Text("The process has ended")
FAILURES = (
    Incident.Kind.STEP_FAILED,
    Incident.Kind.DEADLINE_FAILED,
    Incident.Kind.EVENT_FAILED,
)
"""The incidents of a failed process."""
UNDOING = Text("The process is being undone: its finished steps no longer count")


class ProcessFacts:
    """The facts of several processes, read together."""

    def __init__(self, instances: Iterable[ProcessInstance]) -> None:
        self.instances = list(instances)
        self._keys = [instance.pk for instance in self.instances]

    def each(self) -> list[Circumstances]:
        """Return the circumstances of each process."""
        return [Circumstances(instance, self) for instance in self.instances]

    @cached_property
    def workflows(self) -> set[int]:
        """The keys of their definitions that are workflows."""
        read = ProcessInstance._meta.get_field("definition").is_cached
        known = {row.definition for row in self.instances if read(row)}
        keys = {row.definition_id for row in self.instances if not read(row)}
        found = {row.pk for row in known if row.kind == Definition.Kind.WORKFLOW}
        if keys:
            rows = Definition.objects.filter(pk__in=keys, kind=Definition.Kind.WORKFLOW)
            found |= set(rows.values_list("pk", flat=True))
        return found

    @cached_property
    def undoing(self) -> set[UUID]:
        signs = Q(kind=StepKind.UNDO) | Q(blocked=Blocked.UNDOING)
        return self._of(StepRun.objects.filter(signs))

    @cached_property
    def troubled(self) -> set[UUID]:
        """The processes with failed work, or with work that waits until the running code has its definition."""
        commands = IssuedCommand.objects.failing()
        due = Q(wake_at__isnull=False) | Q(remaining__isnull=False)
        held = self._open().filter(due).exclude(error="")
        return self._of(commands, held)

    @cached_property
    def failed(self) -> set[UUID]:
        """The processes with an open incident of a failure, whatever their status."""
        return self._of(Incident.objects.open().filter(kind__in=FAILURES))

    @cached_property
    def skippable(self) -> set[UUID]:
        return self._of(self._open().exclude(kind__in=[StepKind.JOIN, StepKind.MAP]))

    @cached_property
    def with_result(self) -> set[UUID]:
        return self._of(StepRun.objects.filter(status__in=GIVEN))

    @cached_property
    def left_behind(self) -> set[UUID]:
        """The sub-processes whose parents no longer wait for them."""
        parts = {row.pk for row in self.instances if row.parent_id is not None}
        waiting = self._open().filter(child__in=parts)
        return parts.difference(waiting.values_list("child_id", flat=True))

    @cached_property
    def asking(self) -> set[UUID]:
        return self._of(self._open().filter(kind=StepKind.ASK))

    def _open(self) -> QuerySet[StepRun]:
        return StepRun.objects.filter(finished_at=None)

    def _of(self, *kinds: QuerySet[Any]) -> set[UUID]:
        """The processes with rows in any of these querysets."""
        mine = (
            rows.filter(instance__in=self._keys).order_by().values_list("instance_id")
            for rows in kinds
        )
        first, *others = mine
        found = first.union(*others) if others else first.distinct()
        return {key for (key,) in found}


class Circumstances:
    """The facts of one process."""

    def __init__(
        self, instance: ProcessInstance, together: ProcessFacts | None = None
    ) -> None:
        self.instance = instance
        self._facts = together or ProcessFacts([instance])

    @property
    def ended(self) -> bool:
        return self.instance.finished_at is not None

    @property
    def paused(self) -> bool:
        return self.instance.paused_at is not None

    @property
    def workflow(self) -> bool:
        return self.instance.definition_id in self._facts.workflows

    @property
    def undoing(self) -> bool:
        return self.workflow and self.instance.pk in self._facts.undoing

    @property
    def not_open(self) -> str:
        """Why actions on the steps of the process are not possible; "" if they are."""
        if not self.workflow:
            return Text("Only a workflow has steps that run by themselves")
        if self.ended:
            return Text("The process has ended: restart it as a new one")
        return ""

    @property
    def troubled(self) -> bool:
        known = self.instance.status in TROUBLED
        if known or self.instance.pk in self._facts.troubled:
            return True
        return self.paused and self.instance.pk in self._facts.failed

    @property
    def can_be_skipped(self) -> bool:
        return self.instance.pk in self._facts.skippable

    @property
    def has_result(self) -> bool:
        return self.instance.pk in self._facts.with_result

    @property
    def left_behind(self) -> bool:
        return self.instance.pk in self._facts.left_behind

    @property
    def asks(self) -> bool:
        return self.instance.pk in self._facts.asking
