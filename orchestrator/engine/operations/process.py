"""Actions on one process: their base class, and the refusal for a page that is stale."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils.translation import override

from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    LockedOperation,
    Press,
    lock_row,
    refuse_errors,
)
from orchestrator.engine.operations.circumstances import ENDED, UNDOING, Circumstances
from orchestrator.engine.sql.tables import instances
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import (
    CauseKind,
    Checkpoint,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.text import Text

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
