"""The page of a repair: the staged edits, their effects, and the possible targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.masking import (
    data_of,
    masked_action,
    may_reveal,
    merge_secrets,
    names_of,
    sees_data,
)
from monitoring.queries.graphs import graph_of
from monitoring.queries.instance.diagram import diagram_of
from monitoring.queries.instance.entries import FieldChange, json_diff
from monitoring.queries.instance.moment import moment_of
from monitoring.queries.processes import processes
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
    """An edited value: whose it is, and its differences."""

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
    told: Sequence[Any] = ()
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
    """For each action of a repair why the reader cannot do it; "" if they can."""
    problem: str
    """Why the process cannot be repaired at all: its code is gone or cannot read the stored data."""
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
    """Reads the page; 404 when there is no such process.

    Args:
        pk: the process id.
        user: who reads it.
        step: the chosen step of a workflow.
        item: the number of the chosen element of a map.
    """
    rows = processes()
    definition = get_object_or_404(rows, pk=pk).definition
    drawing_of(graph_of(definition), definition.fingerprint)  # kept; may take a moment
    with snapshot():
        moment = moment_of(get_object_or_404(rows, pk=pk))
        instance = moment.present
        process, problem, targets = Circumstances(instance), "", Targets()
        try:
            targets = targets_of(instance, step, item)
        except Exception as error:  # noqa: BLE001  # the code is gone, or the application's may raise anything
            problem = text_from(error)
        draft = draft_of(instance, user)
        proposals = [
            _summary(instance, row)
            for row in proposals_of(instance)
            if draft is None or row.pk != draft.pk
        ]
        staged = _summary(instance, draft) if draft is not None else None
        state = diagram_of(moment)
        if staged is not None:
            state = state.marked(staged.leaves, LEFT).marked(staged.stands, GHOST)
        return RepairPage(
            instance,
            moment.drawing,
            state,
            staged,
            proposals,
            targets,
            {name: _known(name).refusal(user, process) for name in ACTIONS},
            problem,
            step,
            moment.step_label,
        )


ACTIONS = ("repair", "propose_repair", "approve_repair", "decline_repair")


def _known(name: str) -> ProcessOperation:
    operation = OPERATIONS[name]
    assert isinstance(operation, ProcessOperation)  # noqa: S101  they are named above
    return operation


def _summary(instance: ProcessInstance, repair: Repair) -> RepairSummary:
    moved = repair.revision != instance.revision
    hidden = names_of(instance.definition)
    told = edits_told(repair.edits, instance.definition)
    try:
        plan = plan_repair(instance, repair.edits)
    except Exception as error:  # noqa: BLE001  # the code is gone, or the application's may raise anything
        return RepairSummary(repair, refusal=text_from(error), moved=moved, told=told)
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
        told=told,
    )


def edits_told(edits: Any, definition: Definition) -> Any:
    """Edits with the secrets in their values masked."""
    return masked_action({"edits": edits}, definition)["edits"]


def with_secrets_of_draft(pk: UUID, edits: Any, user: Any) -> tuple[Any, str]:
    """Restores masked secrets in edits from a page, from the person's draft or the process.

    Returns:
        The edits, and why they cannot be carried out; "" if they can.
    """
    instance = processes().get(pk=pk)
    draft = draft_of(instance, user)
    staged = list(draft.edits) if draft is not None else []
    told = edits_told(staged, instance.definition)
    found = []
    for edit in edits if isinstance(edits, list) else []:
        if edit in told:
            found.append(staged[told.index(edit)])
            continue
        if isinstance(edit, dict) and "value" in edit:
            edit = dict(edit)  # do not change the form's value
            if why := with_secrets(instance, edit, user):
                return edits, why
        found.append(edit)
    return (found if isinstance(edits, list) else edits), ""


def with_secrets(instance: ProcessInstance, edit: dict[str, Any], user: Any) -> str:
    """Restores masked secrets in the value of an edit.

    Args:
        instance: the process.
        edit: the edit of the form; its value is changed.
        user: who edits.

    Returns:
        Why the edit cannot be staged: it changes a secret, and the person may not see secrets. Comparing would tell
        them whether their value is the stored one. "" if it can be staged.
    """
    if not sees_data(user):
        raise PermissionMissing
    hidden, stored = names_of(instance.definition), instance.data
    kind = edit.get("edit")
    if kind == EditKind.EVENT:
        known = secret_names.message_secrets(str(edit.get("target", "")))
        hidden, stored = hidden | known, None
    elif kind in (EditKind.RESULT, EditKind.SKIP):
        target = str(edit.get("target", ""))[:18]
        runs = instance.step_runs.filter(pk=int(target) if target.isdecimal() else 0)
        stored = runs.values_list("result", flat=True).first()
    # Without a stored value there is nothing to learn; an event may be compared with stored ones.
    new = stored is None and kind != EditKind.EVENT
    edit["value"], wrong = merge_secrets(
        edit["value"], stored, hidden, may=new or may_reveal(user, instance.name)
    )
    if wrong:
        said = _("%(fields)s is secret: leave it as it stands")
        return said % {"fields": ", ".join(wrong)}
    return ""
