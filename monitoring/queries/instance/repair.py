"""Everything the page of a repair shows: what is staged, what it would come to, and what can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.masking import (
    action_told,
    data_of,
    locked,
    may_reveal,
    names_of,
    sees_data,
)
from monitoring.queries.graphs import graph_of, labels_of
from monitoring.queries.instance.entries import FieldChange
from monitoring.queries.instance.json_diff import json_diff
from monitoring.queries.instance.page import state_now
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
from orchestrator.text import told_by

GHOST = "has-ghost"
"""The class of a step in which the process would be."""
LEFT = "has-left"
"""The class of a step that it would leave."""


@dataclass(frozen=True)
class StagedEdit:
    """One edit, its place among the others, and what is wrong with it; "" for nothing."""

    place: int
    edit: Edit
    mistake: str = ""


@dataclass(frozen=True)
class ComparedValue:
    """A value that is edited: of what, and where it differs."""

    of: str
    changes: list[FieldChange]


@dataclass(frozen=True)
class RepairSummary:
    """What a draft, or a proposal, would come to."""

    repair: Repair
    edits: list[StagedEdit] = field(default_factory=list)
    compared: list[ComparedValue] = field(default_factory=list)
    effects: Sequence[Effect] = ()
    unsafe: Sequence[Effect] = ()
    refusal: str = ""
    """Why it could not be applied as it is; "" if it could."""
    moved: bool = False
    """Whether the process has moved since."""
    stands: Sequence[str] = ()
    leaves: Sequence[str] = ()
    keys: tuple[UUID, UUID] = field(default_factory=lambda: (uuid4(), uuid4()))
    """Those of applying, or proposing, and of declining."""
    told: Sequence[Any] = ()
    """The edits as the page has them, without what is secret."""


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
    """For each action of a repair why a reader cannot do it; "" where they can."""
    problem: str
    """Why the process cannot be repaired at all: its code is gone, or cannot cope with what is stored."""
    step: str
    step_label: str

    @property
    def data(self) -> Any:
        """The data as it stands in the form, without what is secret in it."""
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
        step: of a workflow the step that is chosen.
        item: of a map's elements that with this number.
    """
    rows = processes()
    definition = get_object_or_404(rows, pk=pk).definition
    drawing = drawing_of(graph_of(definition), definition.fingerprint)
    with snapshot():
        instance = get_object_or_404(rows, pk=pk)
        process, problem, targets = Circumstances(instance), "", Targets()
        try:
            targets = targets_of(instance, step, item)
        except Exception as error:  # noqa: BLE001  # the code is gone, or the application's may raise anything
            problem = told_by(error)
        draft = draft_of(instance, user)
        proposals = [
            _summary(instance, row)
            for row in proposals_of(instance)
            if draft is None or row.pk != draft.pk
        ]
        staged = _summary(instance, draft) if draft is not None else None
        state = state_now(instance, drawing)
        return RepairPage(
            instance,
            drawing,
            _with_ghosts(state, staged) if staged is not None else state,
            staged,
            proposals,
            targets,
            {name: _known(name).refusal(user, process) for name in ACTIONS},
            problem,
            step,
            labels_of(definition).get(instance.step, instance.step),
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
        return RepairSummary(repair, refusal=told_by(error), moved=moved, told=told)
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
    """Edits without what is secret in their values."""
    return action_told({"edits": edits}, definition)["edits"]


def with_secrets_of_draft(pk: UUID, edits: Any, user: Any) -> tuple[Any, str]:
    """Puts what is secret back into edits that a page sends, from the person's draft or the process.

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
            edit = dict(edit)  # the form's own stays
            if why := with_secrets(instance, edit, user):
                return edits, why
        found.append(edit)
    return (found if isinstance(edits, list) else edits), ""


def with_secrets(instance: ProcessInstance, edit: dict[str, Any], user: Any) -> str:
    """Puts what is secret back into the value of an edit, where the form had it masked.

    Args:
        instance: the process.
        edit: as the form says it; its value is changed.
        user: who edits.

    Returns:
        Why the edit cannot be staged: it says another value of a secret, and the person may not have secrets shown. The
        answers would tell whether it is the one that is stored. "" if it can.
    """
    if not sees_data(user):
        raise PermissionMissing
    hidden, stored = names_of(instance.definition), instance.data
    kind = edit.get("edit")
    if kind == EditKind.EVENT:
        known = secret_names.of_message(str(edit.get("target", "")))
        hidden, stored = hidden | known, None
    elif kind in (EditKind.RESULT, EditKind.SKIP):
        target = str(edit.get("target", ""))[:18]
        runs = instance.step_runs.filter(pk=int(target) if target.isdecimal() else 0)
        stored = runs.values_list("result", flat=True).first()
    # What nothing is stored of tells nothing; an event may be compared with what is stored.
    new = stored is None and kind != EditKind.EVENT
    edit["value"], wrong = locked(
        edit["value"], stored, hidden, may=new or may_reveal(user, instance.name)
    )
    if wrong:
        said = _("%(fields)s is secret: leave it as it stands")
        return said % {"fields": ", ".join(wrong)}
    return ""


def _with_ghosts(state: DiagramState, staged: RepairSummary) -> DiagramState:
    """The diagram with the steps marked in which the process would be, and those that it would leave."""
    nodes = dict(state.nodes)
    for names, mark in ((staged.leaves, LEFT), (staged.stands, GHOST)):
        for name in names:
            if name in nodes:
                node = nodes[name]
                nodes[name] = replace(node, classes=(*node.classes, mark))
    return DiagramState(nodes, state.edges)
