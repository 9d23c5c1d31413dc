"""Actions on one process: the facts that decide which are possible, the base class, and the refusal of a stale page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import override

from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    LockedOperation,
    Press,
    lock_row,
    refuse_errors,
)
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.storage.results import GIVEN
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import (
    Blocked,
    CauseKind,
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
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


LOOKED_AT = 50
"""The newest checkpoints that are searched for a person's action."""


class ProcessOperation(LockedOperation):
    """An action on one process."""

    model = ProcessInstance
    by_definition = True
    named_by = "instance_id"
    on_step: ClassVar[bool] = False
    """Whether its target is an open visit of the process; the key of the visit is the first value of its form."""
    on_whole: ClassVar[bool] = False
    """Whether its button stands at the head of a process's page, not beside one of its steps or checkpoints."""
    of_workflows: ClassVar[bool] = False
    """Whether it is for workflows alone."""
    with_parents: ClassVar[bool] = False
    """Whether it locks the parents of the process too, the outermost first as always."""
    while_undoing: ClassVar[bool] = True
    """Whether it is possible while the process is being undone."""
    else_restart: ClassVar[bool] = False
    """Whether the refusal for a workflow that has ended names the restart."""

    def why_not(self, process: Circumstances) -> str:
        """Return why it is not possible now; "" if it is."""
        if self.of_workflows and process.not_open:
            return process.not_open
        if process.ended:
            restart = self.else_restart and process.workflow
            return process.not_open if restart else ENDED
        if not self.while_undoing and process.undoing:
            return UNDOING
        return self.obstacle(process)

    def obstacle(self, process: Circumstances) -> str:
        """Return why it is not possible for a process that has not ended; "" if it is, and by default."""
        return ""

    @abstractmethod
    def effect(self, press: Press, *given: Any) -> dict[str, Any] | None:
        """Change the process, in the running transaction; return further values for the audit row.

        Raises:
            ProcessionError: the process does not allow it.
        """

    def before(self, instance: ProcessInstance) -> dict[str, Any]:
        """Return further values of a process before the action, for the audit row; none by default."""
        return {}

    def together(
        self, presses: Sequence[Press], *given: Any
    ) -> Sequence[ProcessChange]:
        """Return the changes of several processes for one group commit; none by default.

        The caller writes each change with its audit row. A process without a change here gets the action by itself.

        Args:
            presses: each on a process that was read without a lock, and allows the action.
            given: the values of its fields.
        """
        return ()

    def concerns(self, process: Circumstances) -> bool:
        """Return whether its button is shown; a button that is shown and cannot be pressed says why."""
        return process.workflow or not self.of_workflows

    def refusal(self, user: Any, process: Circumstances) -> str:
        """Return why a user cannot request it now; "" if they can."""
        return self.forbidden(user, process.instance.name) or self.why_not(process)

    def _lock(
        self, key: UUID, request: ActionRequest, *given: Any
    ) -> tuple[Press, ProcessInstance]:
        if self.with_parents:
            _lock_parents(key)
        instance, now = lock_process(key)
        self._check_permission(request, instance.name)
        check_revision(instance, request.expected_revision)
        OperationRefused.raise_for(self.why_not(Circumstances(instance)))
        return Press(request, instance, now), instance

    def _state(self, row: ProcessInstance) -> dict[str, Any]:
        return {**process_state(row), **self.before(row)}

    def _do(self, press: Press, row: ProcessInstance, *given: Any) -> dict[str, Any]:
        def note(error: Exception) -> None:
            secret_values.attach_process(error, row, *given)

        with refuse_errors(note):
            told = self.effect(press, *given) or {}
        return {"instance": row, "after": {**process_state(row), **told}}


def _lock_parents(instance_id: UUID) -> None:
    """Locks the parents of a process, the outermost first; they never change."""
    found: list[UUID] = []
    part: UUID | None = instance_id
    while part is not None:
        process = ProcessInstance.objects.filter(pk=part)
        part = process.values_list("parent_id", flat=True).first()
        found += [part] if part is not None else []
    for parent in reversed(found):
        instances.lock(parent)


def lock_process(key: UUID) -> tuple[ProcessInstance, datetime]:
    """Lock a process until the transaction ends; return it, and the database's time.

    Raises:
        OperationRefused: there is no such process.
    """
    return lock_row(instances, key, Text("there is no process %(process)s", key))


def process_state(instance: ProcessInstance) -> dict[str, Any]:
    """Return the state of a process, for audit rows."""
    return {
        "status": str(instance.status),
        "step": instance.step,
        "revision": instance.revision,
        "escalation_level": instance.escalation_level,
    }


def check_revision(instance: ProcessInstance, seen: int | None) -> None:
    """Check that a page has shown the present revision of a process; None is a page that has shown none.

    Raises:
        StaleRevision: the process has moved since.
    """
    if seen not in (None, instance.revision):
        raise StaleRevision(explain_stale(instance, seen))


def explain_stale(instance: ProcessInstance, seen: int | None) -> str:
    """Return the action, event or step that moved the process after the revision that the page showed."""
    told, stands = _newest_action(instance, seen or 0), (instance.revision, seen)
    if told is None:
        return Text(
            "The process has changed since the page was loaded. It is now at revision %(revision)s, the page showed "
            "%(seen)s.",
            *stands,
        )
    return Text(
        "The process has changed since the page was loaded: %(why)s. It is now at revision %(revision)s, the page "
        "showed %(seen)s.",
        _cause_of(told),
        *stands,
    )


def _newest_action(instance: ProcessInstance, seen: int) -> Checkpoint | None:
    """The checkpoint of a person's newest action after a revision; else the newest checkpoint.

    Workers continue at once after an action. The message names the person's action, not the work that followed.
    """
    rows = instance.checkpoints.only("instance", "revision", "cause", "at")
    newest = list(rows.order_by("-revision")[:LOOKED_AT])
    for one in newest:
        cause = one.moved_by
        if one.revision > seen and cause and cause.kind == CauseKind.OPERATOR:
            return one
    return newest[0] if newest else None


def _cause_of(checkpoint: Checkpoint) -> str:
    cause, at = checkpoint.moved_by, f"{checkpoint.at:%H:%M:%S} UTC"
    kind, ref = (cause.kind, cause.ref) if cause is not None else (None, "")
    match kind:
        case CauseKind.OPERATOR if action := OperatorAction.objects.filter(
            key=ref
        ).first():
            who = action.actor_name
            return Text("%(who)s did %(action)s at %(time)s", who, action.action, at)
        case CauseKind.EVENT if event := InboxEvent.objects.filter(pk=ref).first():
            return Text("%(type)s arrived at %(time)s", event.type, at)
        case CauseKind.STEP if run := StepRun.objects.filter(pk=ref).first():
            return Text("%(step)s was done at %(time)s", run.node, at)
    with override("en"):  # as all stored texts; pages translate it for each reader
        return Text("%(cause)s at %(time)s", checkpoint.said, at)
