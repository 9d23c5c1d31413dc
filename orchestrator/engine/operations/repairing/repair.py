"""Repair: several edits of one process, planned together and applied in one commit, all or none."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import (
    Circumstances,
    ProcessOperation,
    check_revision,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.repairing import drafts
from orchestrator.engine.operations.repairing.edits import Edit, add_edit, read_edits
from orchestrator.engine.operations.repairing.manager import plan_manager_repair
from orchestrator.engine.operations.repairing.plan import (
    Mistake,
    RepairPlan,
    refuse_code_errors,
)
from orchestrator.engine.operations.repairing.workflow import plan_workflow_repair
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import Cause, CauseKind, ProcessInstance
from orchestrator.text import Text

BY_ANOTHER = Text("a repair of it is applied by a second person: propose it")


class RepairOperation(ProcessOperation):
    """The base of actions on repairs."""

    on_own_page = True
    while_undoing = False
    else_restart = True


class ApplyRepair(RepairOperation):
    """The base of actions that apply a repair."""

    icon = "handled"
    with_parents = True

    def before(self, instance: ProcessInstance) -> dict[str, Any]:
        return {} if definitions.runs_workflow(instance) else {"data": instance.data}


class RepairProcess(ApplyRepair):
    """Applies staged edits to a process: all of them, or none with the reason.

    The action refuses a process that has moved since a person staged the edits.
    """

    name = "repair"
    label = _("Repair")
    done = _("Repaired.")
    may = _("Can repair a process")
    text = _(
        "Applies all staged edits in one commit, or none of them. Nothing that was done outside is taken back."
    )
    given = (Given("edits", "json"),)

    def effect(self, press: Press, edits_json: Any) -> dict[str, Any]:
        if definitions.definition_of(press.process).repair_needs_approval:
            raise OperationRefused(BY_ANOTHER)
        facts = apply_edits(press, read_edits(edits_json))
        drafts.discard_draft(press.process, press.request.actor)
        return facts


repair = register(RepairProcess())


class ProposeRepair(RepairOperation):
    """Proposes staged edits to another person, who applies or declines them; the process continues meanwhile."""

    name = "propose_repair"
    label = _("Propose repair")
    done = _("Proposed: another person applies it.")
    may = _("Can propose a repair of a process")
    text = _("Another person, who may do that, applies or declines it.")
    given = (Given("edits", "json"),)

    def effect(self, press: Press, edits_json: Any) -> dict[str, Any]:
        wanted = read_edits(edits_json)
        OperationRefused.raise_for(_plan(press.process, wanted).refusal)
        row = drafts.store_proposal(press, wanted)
        return {"proposed": str(row.pk), "edits": row.edits}


propose_repair = register(ProposeRepair())


class ApproveRepair(ApplyRepair):
    """Applies the proposal of another person, if the process has not moved since."""

    name = "approve_repair"
    label = _("Apply proposed repair")
    done = _("Repaired.")
    may = _("Can apply a repair that another person has proposed")
    text = RepairProcess.text
    given = (Given("repair", "text"),)

    def effect(self, press: Press, repair_id: str) -> dict[str, Any]:
        row = drafts.lock_proposal(press.process, repair_id)
        OperationRefused.raise_for(drafts.approval_refusal(row, press.request.actor))
        check_revision(press.process, row.revision)
        facts = apply_edits(press, read_edits(row.edits))
        row.delete()
        return {**facts, "proposed_by": row.author_name, "proposed_for": row.reason}


approve_repair = register(ApproveRepair())


class DeclineRepair(RepairOperation):
    """Withdraws a proposal, or declines the proposal of another person; the process stays as it is."""

    name = "decline_repair"
    label = _("Decline proposed repair")
    done = _("Declined.")
    may = _("Can decline a proposed repair, and take back an own one")
    text = _("Nothing is done to the process; the proposal is gone.")
    given = (Given("repair", "text"),)

    def why_not(self, process: Circumstances) -> str:
        return ""

    def effect(self, press: Press, repair_id: str) -> dict[str, Any]:
        row = drafts.lock_proposal(press.process, repair_id)
        facts = {"declined": str(row.pk), "edits": row.edits}
        row.delete()
        return {**facts, "proposed_by": row.author_name}


decline_repair = register(DeclineRepair())


def apply_edits(press: Press, wanted: list[Edit]) -> dict[str, Any]:
    """Apply edits to a locked process; return further values for the audit row.

    Raises:
        OperationRefused: one of the edits is not possible; none is applied.
    """
    allow_idle(LONG_IDLE)
    plan = _plan(press.process, wanted, press)
    OperationRefused.raise_for(plan.refusal)
    facts = plan.carry_out(press)
    return {"edits": [edit.to_json() for edit in wanted], **facts}


def plan_repair(instance: ProcessInstance, body: object) -> RepairPlan:
    """Return the plan of edits to a stored process; locks and changes nothing.

    Raises:
        OperationRefused: the edits cannot be read, or the application's code raises an error.
        UnknownDefinition: the running code no longer has its definition.
    """
    with refuse_code_errors(instance, body), transaction.atomic():
        plan = _plan(instance, read_edits(body))
        transaction.set_rollback(True)
    return plan


def stage(instance: ProcessInstance, user: Any, body: object) -> Mistake | None:
    """Add an edit to a person's draft, in the place of another edit of the same; the process stays as it is.

    Returns:
        Why the edit is not possible; None after it was staged.

    Raises:
        OperationRefused: the edit cannot be read, the person lacks the permission, or the process has moved since the
            person began the draft.
    """
    PermissionMissing.raise_for(repair.forbidden(user, instance.name))
    OperationRefused.raise_for(repair.why_not(Circumstances(instance)))
    with transaction.atomic():
        draft = drafts.lock_draft(instance, user)
        check_revision(instance, draft.revision)
        (edit,) = read_edits([body])
        wanted = add_edit(read_edits(draft.edits), edit)
        plan = plan_repair(instance, [one.to_json() for one in wanted])
        mistake = plan.mistakes.get(plan.edits.index(edit))
        if mistake is None:
            drafts.store_draft(draft, list(plan.edits))
        else:
            transaction.set_rollback(True)
    return mistake


def _plan(
    instance: ProcessInstance, wanted: list[Edit], press: Press | None = None
) -> RepairPlan:
    """The plan of edits; with a press the caller carries the plan out."""
    if not definitions.runs_workflow(instance):
        return plan_manager_repair(instance, wanted)
    cause = press.cause if press else Cause.of(CauseKind.OPERATOR)
    now = press.now if press else database_now()
    return plan_workflow_repair(WorkflowChange.of(instance, cause, now), wanted)
