"""The page of a repair: the staged edits, their effects, and the possible targets of edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.base.differences import FieldChange, json_diff
from monitoring.base.masking import (
    data_of,
    masked_action,
    may_reveal,
    merge_secrets,
    names_of,
    sees_data,
)
from monitoring.diagrams import DiagramState, Drawing
from monitoring.process.diagram import diagram_of
from monitoring.process.revision.moment import process_moment, stored_drawing
from monitoring.queries.processes import process_rows
from orchestrator import secret_names
from orchestrator.engine.operations import (
    OPERATIONS,
    Circumstances,
    Edit,
    EditKind,
    Effect,
    ProcessOperation,
    Targets,
    draft_of,
    plan_repair,
    proposals_of,
    targets_of,
)
from orchestrator.exceptions import PermissionMissing
from orchestrator.models import Definition, ProcessInstance, Repair
from orchestrator.snapshot import snapshot
from orchestrator.text import text_from

GHOST = "has-ghost"
"""The class of a step that the repair would enter."""
LEFT = "has-left"
"""The class of a step that the repair would leave."""


@dataclass(frozen=True)
class StagedEdit:
    """One edit, its place among the others, and its mistake; "" if there is none."""

    place: int
    edit: Edit
    mistake: str = ""


@dataclass(frozen=True)
class ComparedValue:
    """An edited value: the name of its owner, and its differences."""

    of: str
    changes: list[FieldChange]


@dataclass(frozen=True)
class RepairSummary:
    """The effects of a draft or a proposal."""

    repair: Repair
    edits: list[StagedEdit] = field(default_factory=list)
    compared: list[ComparedValue] = field(default_factory=list)
    effects: Sequence[Effect] = ()
    unsafe: Sequence[Effect] = ()
    refusal: str = ""
    """Why it cannot be applied; "" if it can."""
    moved: bool = False
    """Whether the process has a newer revision."""
    stands: Sequence[str] = ()
    leaves: Sequence[str] = ()
    keys: tuple[UUID, UUID] = field(default_factory=lambda: (uuid4(), uuid4()))
    """The idempotency keys of applying or proposing, and of declining."""
    masked_edits: Sequence[Any] = ()
    """The edits with secrets masked."""


@dataclass(frozen=True)
class RepairPage:
    """The read model of the page."""

    instance: ProcessInstance
    drawing: Drawing
    state: DiagramState
    draft: RepairSummary | None
    proposals: list[RepairSummary]
    targets: Targets
    why: dict[str, str]
    """The refusal of each action of a repair; "" for an action that the reader may do."""
    problem: str
    """Why the process cannot be repaired: the running code lacks it, or cannot read the stored data."""
    step: str
    step_label: str

    @property
    def data(self) -> Any:
        """The data for the form, with secrets masked."""
        return data_of(self.instance)

    @property
    def applies(self) -> str:
        """The name of the action that the draft is for."""
        return "propose_repair" if self.targets.needs_approval else "repair"


def repair_page(
    pk: UUID, user: Any, step: str = "", item: int | None = None
) -> RepairPage:
    """Read the page; 404 without such a process.

    Args:
        pk: the process id.
        user: the reader.
        step: the chosen step of a workflow.
        item: the number of the chosen element of a map.
    """
    rows = process_rows()
    stored_drawing(get_object_or_404(rows, pk=pk).definition)  # cached
    with snapshot():
        moment = process_moment(get_object_or_404(rows, pk=pk))
        instance = moment.present
        process = Circumstances(instance)
        targets, problem = _targets(instance, step, item)
        draft = draft_of(instance, user)
        proposals = [
            _summary(instance, row)
            for row in proposals_of(instance)
            if draft is None or row.pk != draft.pk
        ]
        staged = _summary(instance, draft) if draft is not None else None
        return RepairPage(
            instance,
            moment.drawing,
            _mark_steps(diagram_of(moment), staged),
            staged,
            proposals,
            targets,
            {name: _operation(name).refusal(user, process) for name in ACTIONS},
            problem,
            step,
            moment.step_label,
        )


def _targets(
    instance: ProcessInstance, step: str, item: int | None
) -> tuple[Targets, str]:
    """Return the possible targets of edits, and why there are none; "" if there are some."""
    try:
        return targets_of(instance, step, item), ""
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        return Targets(), text_from(error)


def _mark_steps(state: DiagramState, staged: RepairSummary | None) -> DiagramState:
    if staged is None:
        return state
    return state.marked(staged.leaves, LEFT).marked(staged.stands, GHOST)


ACTIONS = ("repair", "propose_repair", "approve_repair", "decline_repair")


def _operation(name: str) -> ProcessOperation:
    operation = OPERATIONS[name]
    assert isinstance(operation, ProcessOperation)  # noqa: S101  they are named above
    return operation


def _summary(instance: ProcessInstance, repair: Repair) -> RepairSummary:
    moved = repair.revision != instance.revision
    hidden = names_of(instance.definition)
    masked = masked_edits(repair.edits, instance.definition)
    try:
        plan = plan_repair(instance, repair.edits)
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        why = text_from(error)
        return RepairSummary(repair, refusal=why, moved=moved, masked_edits=masked)
    return RepairSummary(
        repair,
        [
            StagedEdit(place, edit, str(plan.mistakes.get(place, "")))
            for place, edit in enumerate(plan.edits)
        ],
        [
            ComparedValue(one.of, json_diff(one.before, one.after, hidden))
            for one in plan.edited
        ],
        plan.effects,
        plan.unsafe,
        plan.refusal,
        moved,
        plan.stands,
        plan.leaves,
        masked_edits=masked,
    )


def masked_edits(edits: Any, definition: Definition) -> Any:
    """Return edits with the secrets in their values masked."""
    return masked_action({"edits": edits}, definition)["edits"]


def restore_draft_secrets(pk: UUID, edits: Any, user: Any) -> tuple[Any, str]:
    """Restore the masked secrets in the edits of a form, from the person's draft or the process.

    Returns:
        The edits, and why they cannot be staged; "" if they can.
    """
    instance = process_rows().get(pk=pk)
    draft = draft_of(instance, user)
    staged = list(draft.edits) if draft is not None else []
    masked = masked_edits(staged, instance.definition)
    found = []
    for edit in edits if isinstance(edits, list) else []:
        if edit in masked:
            found.append(staged[masked.index(edit)])
            continue
        if isinstance(edit, dict) and "value" in edit:
            edit = dict(edit)  # do not change the form's value
            if why := restore_secrets(instance, edit, user):
                return edits, why
        found.append(edit)
    return (found if isinstance(edits, list) else edits), ""


def restore_secrets(instance: ProcessInstance, edit: dict[str, Any], user: Any) -> str:
    """Restore masked secrets in the value of an edit.

    Args:
        instance: the process.
        edit: the edit of the form; its value is changed.
        user: the person.

    Returns:
        Why the edit cannot be staged; "" if it can. A person who may not see secrets may not change them either: a
        comparison would tell whether the new value is the stored one.
    """
    if not sees_data(user):
        raise PermissionMissing
    hidden, stored = _edited_value(instance, edit)
    # A value without a stored one tells nothing; an event may be compared with stored values.
    new = stored is None and edit.get("edit") != EditKind.EVENT
    edit["value"], wrong = merge_secrets(
        edit["value"], stored, hidden, may=new or may_reveal(user, instance.name)
    )
    if wrong:
        said = _("%(fields)s is secret: leave it as it stands")
        return said % {"fields": ", ".join(wrong)}
    return ""


def _edited_value(
    instance: ProcessInstance, edit: Mapping[str, Any]
) -> tuple[frozenset[str], Any]:
    """Return the names of the secrets in an edited value, and the stored value; None without one."""
    hidden, kind = names_of(instance.definition), edit.get("edit")
    target = str(edit.get("target", ""))
    if kind == EditKind.EVENT:
        return hidden | secret_names.message_secrets(target), None
    if kind not in (EditKind.RESULT, EditKind.SKIP):
        return hidden, instance.data
    key = int(target[:18]) if target[:18].isdecimal() else 0
    runs = instance.step_runs.filter(pk=key)
    return hidden, runs.values_list("result", flat=True).first()
