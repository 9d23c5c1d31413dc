"""Repair: several edits of one process, planned together and applied in one commit, all or none."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.base import Given, Press, ProcessOperation
from orchestrator.engine.operations.circumstances import Circumstances
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.repairing import drafts, edits, manager, workflow
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.operations.repairing.plan import (
    Mistake,
    RepairPlan,
    asked_of_code,
)
from orchestrator.engine.operations.stale import what_changed
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import Cause, CauseKind, ProcessInstance
from orchestrator.text import Text

BY_ANOTHER = Text("a repair of it is applied by a second person: propose it")


class RepairOperation(ProcessOperation):
    """The base of actions on repairs."""

    on_own_page = True
    while_undoing = False
    else_restart = True


class AppliedRepair(RepairOperation):
    """The base of actions that apply a repair."""

    icon = "handled"
    with_parents = True

    def before(self, instance: ProcessInstance) -> dict[str, Any]:
        return {} if definitions.is_workflow(instance) else {"data": instance.data}


class RepairProcess(AppliedRepair):
    """Applies staged edits to a process: all of them, or none with the reason why.

    A process that has moved since the edits were staged is refused.
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
        told = applied(press, edits.read(edits_json))
        drafts.discard(press.process, press.request.actor)
        return told


repair = register(RepairProcess())


class ProposeRepair(RepairOperation):
    """Has another person look at staged edits, and apply or decline them; the process goes on meanwhile."""

    name = "propose_repair"
    label = _("Propose repair")
    done = _("Proposed: another person applies it.")
    may = _("Can propose a repair of a process")
    text = _("Another person, who may do that, applies or declines it.")
    given = (Given("edits", "json"),)

    def effect(self, press: Press, edits_json: Any) -> dict[str, Any]:
        wanted = edits.read(edits_json)
        OperationRefused.raise_for(_planned(press.process, wanted).refusal)
        row = drafts.propose(press, wanted)
        return {"proposed": str(row.pk), "edits": row.edits}


propose_repair = register(ProposeRepair())


class ApproveRepair(AppliedRepair):
    """Applies what another person has proposed, if the process is still as that person saw it."""

    name = "approve_repair"
    label = _("Apply proposed repair")
    done = _("Repaired.")
    may = _("Can apply a repair that another person has proposed")
    text = RepairProcess.text
    given = (Given("repair", "text"),)

    def effect(self, press: Press, repair_id: str) -> dict[str, Any]:
        row = drafts.proposal(press.process, repair_id)
        OperationRefused.raise_for(drafts.is_own(row, press.request.actor))
        if row.revision != press.process.revision:
            raise StaleRevision(what_changed(press.process, row.revision))
        told = applied(press, edits.read(row.edits))
        row.delete()
        return {**told, "proposed_by": row.author_name, "proposed_for": row.reason}


approve_repair = register(ApproveRepair())


class DeclineRepair(RepairOperation):
    """Takes a proposal back, or declines that of another person; nothing is done to the process."""

    name = "decline_repair"
    label = _("Decline proposed repair")
    done = _("Declined.")
    may = _("Can decline a proposed repair, and take back an own one")
    text = _("Nothing is done to the process; the proposal is gone.")
    given = (Given("repair", "text"),)

    def why_not(self, process: Circumstances) -> str:
        return ""

    def effect(self, press: Press, repair_id: str) -> dict[str, Any]:
        row = drafts.proposal(press.process, repair_id)
        told = {"declined": str(row.pk), "edits": row.edits}
        row.delete()
        return {**told, "proposed_by": row.author_name}


decline_repair = register(DeclineRepair())


def applied(press: Press, wanted: list[Edit]) -> dict[str, Any]:
    """Carries edits out on a locked process; returns what the audit row tells of them.

    Raises:
        OperationRefused: one of them cannot be made; none is.
    """
    idle_limit.allow(idle_limit.LONG)
    plan = _planned(press.process, wanted, press)
    OperationRefused.raise_for(plan.refusal)
    told = plan.carry_out(press)
    return {"edits": [edit.to_json() for edit in wanted], **told}


def plan_repair(instance: ProcessInstance, body: object) -> RepairPlan:
    """What edits would come to, asked of a process as it is stored; nothing is locked or changed.

    Raises:
        OperationRefused: the edits cannot be read, or the application's code raises something.
        UnknownDefinition: the running code no longer has its definition.
    """
    with asked_of_code(instance, body), transaction.atomic():
        plan = _planned(instance, edits.read(body))
        transaction.set_rollback(True)
    return plan


def stage(instance: ProcessInstance, user: Any, body: object) -> Mistake | None:
    """Adds an edit to a person's draft, in the place of one of the same; nothing happens to the process.

    Returns:
        Why it cannot be made; None when it was staged.

    Raises:
        OperationRefused: it cannot be read, the person may not, or the process has moved since the draft was begun.
    """
    PermissionMissing.raise_for(repair.forbidden(user, instance.name))
    OperationRefused.raise_for(repair.why_not(Circumstances(instance)))
    with transaction.atomic():
        draft = drafts.begun(instance, user)
        if draft.revision != instance.revision:
            raise StaleRevision(what_changed(instance, draft.revision))
        (edit,) = edits.read([body])
        wanted = edits.with_one(edits.read(draft.edits), edit)
        plan = plan_repair(instance, [one.to_json() for one in wanted])
        mistake = plan.mistakes.get(plan.edits.index(edit))
        if mistake is None:
            drafts.keep(draft, list(plan.edits))
        else:
            transaction.set_rollback(True)
    return mistake


def _planned(
    instance: ProcessInstance, wanted: list[Edit], press: Press | None = None
) -> RepairPlan:
    """What edits would come to; a press where they are to be carried out."""
    if not definitions.is_workflow(instance):
        return manager.planned(instance, wanted)
    cause = press.cause if press else Cause.of(CauseKind.OPERATOR)
    now = press.now if press else database_now()
    return workflow.planned(WorkflowChange.of(instance, cause, now), wanted)
