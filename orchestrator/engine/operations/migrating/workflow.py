"""Carrying a workflow's process over to another version: where what has happened is a history of that version too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import registry
from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode, encode
from orchestrator.definition.migrating import carried_data
from orchestrator.definition.workflow.advance import Arrivals
from orchestrator.definition.workflow.carrying import (
    KnownVisit,
    misfits,
    unfitting,
    unmapped,
)
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import replayed
from orchestrator.engine.change import maps, secret_values
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.incidents import said
from orchestrator.engine.change.visits import queue_of
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.migrating.plan import (
    BUSY,
    MigrationTarget,
    key_kept,
)
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.results import GIVEN, last_visit
from orchestrator.engine.storage.settled_visits import History
from orchestrator.engine.storage.switches import switches_of
from orchestrator.engine.storage.tables import outside_ids
from orchestrator.exceptions import (
    InvalidDefinition,
    InvalidMessage,
    NotCarried,
    UnknownDefinition,
)
from orchestrator.models import (
    Blocked,
    Definition,
    ProcessInstance,
    StepKind,
    StepStatus,
)
from orchestrator.text import Text


@dataclass(frozen=True)
class WorkflowMigration:
    """Where it would stand.

    Args:
        definition: the other version.
        pin: what it would run on: input, graph, stored row.
        mapping: which step of the other version each of its steps is.
        open: the steps in which visits are open.
        given_up: the steps that it has visited and the other version does not have.
        input: whether its input becomes another.
        pinned: the stored version that it is on.
    """

    definition: type[Workflow]
    pin: Pin
    mapping: Mapping[str, str]
    open: list[str]
    given_up: list[str]
    input: bool
    pinned: Definition

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The steps in which it stands, and those in which it would."""
        return [(name, self.mapping[name]) for name in self.open]


def planned(instance: ProcessInstance, target: MigrationTarget) -> WorkflowMigration:
    """Where a process would stand.

    Raises:
        NotCarried: it cannot go over now.
        Exception: whatever the application's code raises.
    """
    idle_limit.allow(idle_limit.LONG)
    _check_rest(instance)
    pin = _pinned(instance, target)
    rows = instance.step_runs.order_by().values_list("node", flat=True).distinct()
    visited = set(rows)
    old = visited | {node["id"] for node in target.pinned.graph["nodes"]}
    mapping = target.row.mapping(sorted(old), pin.plan.vertices, target.chosen)
    _check_one_to_one(mapping, visited)
    given_up = sorted(visited - mapping.keys())
    _check_names(given_up, pin.plan)
    history = History(instance, mapping)
    _refuse(_reasons(instance, target, pin.plan, history, mapping))
    now = [run.node for run in history.runs if run.finished_at is None]
    before = {new: name for name, new in mapping.items()}
    return WorkflowMigration(
        pin.definition,
        pin,
        mapping,
        [before[name] for name in dict.fromkeys(now)],
        given_up,
        pin.data != instance.data,
        target.pinned,
    )


def _check_rest(instance: ProcessInstance) -> None:
    """Refuses while a worker is at one of its steps: that runs the function of the old version."""
    held = instance.step_runs.filter(finished_at=None).exclude(owner="").first()
    if held is not None:
        raise NotCarried(BUSY.filled(held.node))


def _pinned(instance: ProcessInstance, target: MigrationTarget) -> Pin:
    """What the process would run on: its input as the other version reads it, and the graph that this makes of it."""
    definition: Any = target.definition
    with applications(InvalidDefinition, InvalidMessage, NotCarried):
        made = carried_data(definition.Input, instance.data, target.row)
        key_kept(definition, instance, made)
        try:
            pin = definitions.pin(definition, made)
        except (InvalidDefinition, InvalidMessage) as mistake:
            raise NotCarried(
                "the other version makes no graph of its input: %(why)s", mistake
            ) from None
    if pin.data != instance.data:
        seen = [one.version for one in switches_of(instance)]
        if definition.version in seen:
            raise NotCarried(
                "it was on version %(version)s before, with another input",
                definition.version,
            )
    return pin


def _check_one_to_one(mapping: Mapping[str, str], visited: Iterable[str]) -> None:
    """Refuses a mapping by which the visits of two steps would be those of one."""
    seen: dict[str, str] = {}
    for name in sorted(visited):
        if (new := mapping.get(name)) is None:
            continue
        if new in seen:
            raise NotCarried(
                "%(step)s and %(other_step)s were visited, and would be one step: %(place)s",
                seen[new],
                name,
                new,
            )
        seen[new] = name


def _check_names(given_up: Iterable[str], plan: Plan) -> None:
    """Refuses to give up what was done in a step whose name another step of the other version has."""
    for name in given_up:
        if name in plan.vertices:
            raise NotCarried(
                "%(step)s was visited, and another step there has its name", name
            )


def _refuse(reasons: Iterator[str]) -> None:
    """Refuses with the first reason, if there is any."""
    if reason := next(reasons, ""):
        raise NotCarried(reason)


def _reasons(
    instance: ProcessInstance,
    target: MigrationTarget,
    plan: Plan,
    history: History,
    mapping: Mapping[str, str],
) -> Iterator[str]:
    """Why the process cannot go over."""
    visits = list(_visits(instance, mapping))
    found = [*unmapped(visits, target.definition.version), *unfitting(visits, plan)]
    found += _answers(visits, target, plan)
    found += _children(instance, mapping, plan)
    yield from found
    if found:
        return
    yield from _caught(instance, history, plan, target, mapping)
    try:
        replay = replayed(plan, history.settled(plan))
    except Exception as error:  # noqa: BLE001  # predicates may raise anything
        secret_values.note_of_process(error, instance)
        yield Text(
            "its history cannot be told by the other version: %(why)s", said(error)
        )
        return
    since = max(history.resumed_at, default=0)
    yield from misfits(replay, visits, since)
    yield from _results(instance, target, plan, mapping)


def _visits(
    instance: ProcessInstance, mapping: Mapping[str, str]
) -> Iterator[KnownVisit]:
    """The visits that count, of a map its own; and whatever else is open in a step that the other version lacks."""
    history = History(instance)
    for run in history.visits.values():
        name = mapping.get(run.node, "")
        yield KnownVisit(
            name,
            run.node,
            run.visit,
            str(run.kind),
            None if run.finished_at is None else run.left or 0,
            run.status == StepStatus.NOT_TAKEN,
            Arrivals(run.arrived, run.taken),
        )
    for run in history.runs:
        if run.finished_at is None and run.node not in mapping:
            yield KnownVisit("", run.node, run.visit, str(run.kind))


def _answers(
    visits: Iterable[KnownVisit], target: MigrationTarget, plan: Plan
) -> Iterator[str]:
    """Questions that are not answered yet and have other answers now."""
    details = {node["id"]: node["detail"] for node in target.pinned.graph["nodes"]}
    new: Any = target.definition
    there = {node.id: node.detail for node in new.graph(plan).nodes}
    for one in visits:
        if one.open and one.kind == StepKind.ASK and one.step in plan.vertices:
            before = details.get(one.was, "").partition(", at most ")[0]
            now = there[one.step].partition(", at most ")[0]
            if before != now:
                yield Text(
                    "the question of %(step)s is not answered yet, and has other answers there: %(choices)s",
                    one.was,
                    now,
                )


def _children(
    instance: ProcessInstance, mapping: Mapping[str, str], plan: Plan
) -> Iterator[str]:
    """Sub-processes that are waited for by a step that runs another definition there."""
    rows = instance.step_runs.filter(finished_at=None, child__isnull=False).order_by()
    for node, name in rows.values_list("node", "child__name").distinct():
        vertex = plan.vertices.get(mapping.get(node, ""))
        wanted = vertex.step.definition if vertex is not None else None
        if wanted is None or wanted.name != name:
            yield Text(
                "%(step)s waits for the sub-process %(name)s, and runs none of it there",
                node,
                name,
            )


def _caught(
    instance: ProcessInstance,
    history: History,
    plan: Plan,
    target: MigrationTarget,
    mapping: Mapping[str, str],
) -> Iterator[str]:
    """Failures that were caught by a way that has another number there: a history names ways by their numbers."""
    failed = [
        run for run in history.runs if run.status == StepStatus.FAILED and run.left
    ]
    if not failed:
        return
    before = {edge["id"]: edge for edge in target.pinned.graph["edges"]}
    now = {link.id: link for link in plan.links}
    rows = instance.checkpoints.filter(revision__in=[run.left for run in failed])
    for text in rows.exclude(edge="").values_list("edge", flat=True):
        for name in text.split(","):
            old, new = before.get(name), now.get(name)
            if old is None or old["kind"] != "error":
                continue
            same = new is not None and (new.kind, new.source, new.target) == (
                "error",
                mapping.get(old["source"]),
                mapping.get(old["target"]),
            )
            if not same:
                yield Text(
                    "the failure of %(step)s was caught, by a way that is none there",
                    old["source"],
                )


def _results(
    instance: ProcessInstance,
    target: MigrationTarget,
    plan: Plan,
    mapping: Mapping[str, str],
) -> Iterator[str]:
    """The results that count and are not of the form that the other version declares."""
    before = _known_plan(target)
    given = instance.step_runs.filter(status__in=GIVEN).exclude(kind=StepKind.UNDO)
    names = given.order_by().values_list("node", flat=True).distinct()
    for name in sorted(set(names) & mapping.keys()):
        vertex = plan[mapping[name]]
        old = before.vertices.get(name) if before is not None else None
        if old is not None and _same_form(old, vertex):
            continue
        rows = given.filter(node=name).order_by("visit", "round")
        for run in last_visit(rows) or ():
            if run.status == StepStatus.SKIPPED:
                continue  # a step that is passed over may be given anything
            form = vertex.returns if run.kind == StepKind.ITEM else vertex.result_type
            try:
                decode(form, run.result)
            except InvalidMessage as mistake:
                yield Text(
                    "the result of %(step)s is not of the form that %(place)s gives: %(why)s",
                    name,
                    vertex.name,
                    mistake,
                )
                break


def _same_form(old: Vertex, new: Vertex) -> bool:
    return bool(
        old.returns == new.returns
        and old.step.event == new.step.event
        and old.step.choices == new.step.choices
    )


def _known_plan(target: MigrationTarget) -> Plan | None:
    """The plan of the version that it is on, if the running code still has it."""
    try:
        found: Any = registry.definition(target.pinned.name, target.pinned.version)
    except UnknownDefinition:
        return None
    plan: Plan | None = found.static
    return plan


def carry_out(press: Press, plan: WorkflowMigration) -> dict[str, Any]:
    """Carries a locked process over, in one change; returns what the audit row tells of it."""
    instance, steps = press.process, plan.pin.plan
    queue = plan.definition.queue
    change = WorkflowChange(instance, press.cause, press.now, steps, queue)
    renamed = {old: new for old, new in plan.mapping.items() if old != new}
    _take_open(change, plan)
    _give_up(instance, plan.given_up)
    _rename(instance, renamed)
    _requeue_given_up(change)
    maps.fill_windows(change)
    pinned = plan.pin.row()
    definitions.keep_secrets(pinned, plan.pinned)
    change.pin(pinned)
    told: dict[str, Any] = {"steps": renamed}
    if plan.input:
        instance.data = change.also["data"] = plan.pin.data
        told["input"] = plan.pin.data
    instance.summary = change.also["summary"] = secret_values.summary_of(
        plan.definition, plan.pin.input, plan.pin.data
    )
    change.writes += outside_ids.renewed(
        instance.pk, plan.definition, encode(plan.pin.input)
    )
    instance.step = renamed.get(instance.step, instance.step)
    change.write()
    return told


def _take_open(change: WorkflowChange, plan: WorkflowMigration) -> None:
    """Gives the open visits the queues of the other version, and makes sure that no worker has taken one meanwhile.

    Raises:
        NotCarried: one has.
    """
    rows = change.instance.step_runs.filter(finished_at=None)
    number = 0
    for name, status in rows.filter(item=None).values_list("node", "status"):
        change.steps[plan.mapping[name]] = status
    for name in plan.open:
        vertex = plan.pin.plan[plan.mapping[name]]
        queue = queue_of(vertex.step, change.queue)
        number += rows.filter(node=name, owner="").update(queue=queue)
        change.rings.add(queue)
    if number != change.instance.open_steps:
        raise NotCarried(Text("a worker has just taken one of its steps: try again"))


def _give_up(instance: ProcessInstance, steps: list[str]) -> None:
    """What was done in steps that the other version does not have counts no more; it stays to be seen."""
    rows = instance.step_runs.filter(node__in=steps)
    rows.update(status=StepStatus.SUPERSEDED, blocked="", blocked_on="")


def _requeue_given_up(change: WorkflowChange) -> None:
    """Gives what a failure has cancelled, and may bring back, the queues of the other version."""
    cancelled = {"status": StepStatus.CANCELLED, "blocked": Blocked.FAILURE}
    rows = change.instance.step_runs.filter(**cancelled)
    for name in set(rows.values_list("node", flat=True)):
        queue = queue_of(change.plan[name].step, change.queue)
        rows.filter(node=name).update(queue=queue)


def _rename(instance: ProcessInstance, names: Mapping[str, str]) -> None:
    """Gives the visits the new names of their steps, by way of names that no step has: some may only be exchanged."""
    rows = instance.step_runs
    between = {old: f" {number}" for number, old in enumerate(sorted(names))}
    for column in ("node", "blocked_on"):
        for old, name in between.items():
            rows.filter(**{column: old}).update(**{column: name})
        for old, name in between.items():
            rows.filter(**{column: name}).update(**{column: names[old]})
