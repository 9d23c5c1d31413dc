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
from orchestrator.engine.operations.skip import result_form
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.results import GIVEN, last_visit
from orchestrator.engine.storage.settled_visits import History
from orchestrator.engine.storage.switches import switches_of
from orchestrator.engine.storage.tables import outside_ids
from orchestrator.exceptions import (
    InvalidDefinition,
    InvalidMessage,
    NotMigrated,
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

    def carry_out(self, press: Press) -> dict[str, Any]:
        """Carries a locked process over, in one change; returns what the audit row tells of it."""
        instance, steps = press.process, self.pin.plan
        queue = self.definition.queue
        change = WorkflowChange(instance, press.cause, press.now, steps, queue)
        renamed = {old: new for old, new in self.mapping.items() if old != new}
        self._take_open(change)
        _give_up(instance, self.given_up)
        _rename(instance, renamed)
        _requeue_given_up(change)
        maps.fill_windows(change)
        pinned = self.pin.row()
        definitions.keep_secrets(pinned, self.pinned)
        change.pin(pinned)
        told: dict[str, Any] = {"steps": renamed}
        if self.input:
            instance.data = change.also["data"] = self.pin.data
            told["input"] = self.pin.data
        instance.summary = change.also["summary"] = secret_values.summary_of(
            self.definition, self.pin.input, self.pin.data
        )
        change.writes += outside_ids.renewed(
            instance.pk, self.definition, encode(self.pin.input)
        )
        instance.step = renamed.get(instance.step, instance.step)
        change.write()
        return told

    def _take_open(self, change: WorkflowChange) -> None:
        """Gives the open visits the queues of the other version, and makes sure that no worker has taken one meanwhile.

        Raises:
            NotMigrated: one has.
        """
        rows = change.instance.step_runs.filter(finished_at=None)
        number = 0
        for name, status in rows.filter(item=None).values_list("node", "status"):
            change.steps[self.mapping[name]] = status
        for name in self.open:
            vertex = self.pin.plan[self.mapping[name]]
            queue = queue_of(vertex.step, change.queue)
            number += rows.filter(node=name, owner="").update(queue=queue)
            change.rings.add(queue)
        if number != change.instance.open_steps:
            raise NotMigrated(
                Text("a worker has just taken one of its steps: try again")
            )


def planned(instance: ProcessInstance, target: MigrationTarget) -> WorkflowMigration:
    """Where a process would stand.

    Raises:
        NotMigrated: it cannot go over now.
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
    fit = _Fit(instance, target, pin.plan, history, mapping)
    if reason := next(fit.reasons(), ""):
        raise NotMigrated(reason)
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
        raise NotMigrated(BUSY.filled(held.node))


def _pinned(instance: ProcessInstance, target: MigrationTarget) -> Pin:
    """The input as the other version reads it, and the graph that it makes from this input."""
    definition: Any = target.definition
    with applications(InvalidDefinition, InvalidMessage, NotMigrated):
        made = carried_data(definition.Input, instance.data, target.row)
        key_kept(definition, instance, made)
        try:
            pin = definitions.pin(definition, made)
        except (InvalidDefinition, InvalidMessage) as mistake:
            raise NotMigrated(
                "the other version makes no graph of its input: %(why)s", mistake
            ) from None
    if pin.data != instance.data:
        seen = [one.version for one in switches_of(instance)]
        if definition.version in seen:
            raise NotMigrated(
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
            raise NotMigrated(
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
            raise NotMigrated(
                "%(step)s was visited, and another step there has its name", name
            )


@dataclass(frozen=True)
class _Fit:
    """Whether a process fits the other version.

    Args:
        instance: the process.
        target: the other version.
        plan: the graph that it would run on.
        history: its history with the names that its steps have there.
        mapping: which step of the other version each of its steps is.
    """

    instance: ProcessInstance
    target: MigrationTarget
    plan: Plan
    history: History
    mapping: Mapping[str, str]

    def reasons(self) -> Iterator[str]:
        """Why the process cannot go over."""
        visits, version = list(self._visits()), self.target.definition.version
        found = [*unmapped(visits, version), *unfitting(visits, self.plan)]
        found += [*self._answers(visits), *self._children()]
        yield from found
        if found:
            return
        yield from self._caught()
        try:
            replay = replayed(self.plan, self.history.settled(self.plan))
        except Exception as error:  # noqa: BLE001  # predicates may raise anything
            secret_values.note_of_process(error, self.instance)
            yield Text(
                "its history cannot be told by the other version: %(why)s", said(error)
            )
            return
        since = max(self.history.resumed_at, default=0)
        yield from misfits(replay, visits, since)
        yield from self._results()

    def _visits(self) -> Iterator[KnownVisit]:
        """The visits that count, of a map its own; and whatever else is open in a step that the other version lacks."""
        before = History(self.instance)
        for run in before.visits.values():
            name = self.mapping.get(run.node, "")
            yield KnownVisit(
                name,
                run.node,
                run.visit,
                str(run.kind),
                None if run.finished_at is None else run.left or 0,
                run.status == StepStatus.NOT_TAKEN,
                Arrivals(run.arrived, run.taken),
            )
        for run in before.runs:
            if run.finished_at is None and run.node not in self.mapping:
                yield KnownVisit("", run.node, run.visit, str(run.kind))

    def _answers(self, visits: Iterable[KnownVisit]) -> Iterator[str]:
        """Questions that are not answered yet and have other answers now."""
        nodes = self.target.pinned.graph["nodes"]
        details = {node["id"]: node["detail"] for node in nodes}
        new: Any = self.target.definition
        there = {node.id: node.detail for node in new.graph(self.plan).nodes}
        for one in visits:
            if one.open and one.kind == StepKind.ASK and one.step in self.plan.vertices:
                before = details.get(one.was, "").partition(", at most ")[0]
                now = there[one.step].partition(", at most ")[0]
                if before != now:
                    yield Text(
                        "the question of %(step)s is not answered yet, and has other answers there: %(choices)s",
                        one.was,
                        now,
                    )

    def _children(self) -> Iterator[str]:
        """Sub-processes that are waited for by a step that runs another definition there."""
        rows = self.instance.step_runs.filter(finished_at=None, child__isnull=False)
        pairs = rows.order_by().values_list("node", "child__name").distinct()
        for node, name in pairs:
            vertex = self.plan.vertices.get(self.mapping.get(node, ""))
            wanted = vertex.step.definition if vertex is not None else None
            if wanted is None or wanted.name != name:
                yield Text(
                    "%(step)s waits for the sub-process %(name)s, and runs none of it there",
                    node,
                    name,
                )

    def _caught(self) -> Iterator[str]:
        """Failures that were caught by a way that has another number there: a history names ways by their numbers."""
        runs = self.history.runs
        left = [run.left or 0 for run in runs if run.status == StepStatus.FAILED]
        if not any(left):
            return
        before = {edge["id"]: edge for edge in self.target.pinned.graph["edges"]}
        now = {link.id: link for link in self.plan.links}
        rows = self.instance.checkpoints.filter(revision__in=left)
        for text in rows.exclude(edge="").values_list("edge", flat=True):
            for name in text.split(","):
                old, new = before.get(name), now.get(name)
                if old is None or old["kind"] != "error":
                    continue
                same = new is not None and (new.kind, new.source, new.target) == (
                    "error",
                    self.mapping.get(old["source"]),
                    self.mapping.get(old["target"]),
                )
                if not same:
                    yield Text(
                        "the failure of %(step)s was caught, by a way that is none there",
                        old["source"],
                    )

    def _results(self) -> Iterator[str]:
        """The results that count and are not of the form that the other version declares."""
        before = _known_plan(self.target.pinned)
        given = self.instance.step_runs.filter(status__in=GIVEN)
        given = given.exclude(kind=StepKind.UNDO)
        names = given.order_by().values_list("node", flat=True).distinct()
        for name in sorted(set(names) & self.mapping.keys()):
            vertex = self.plan[self.mapping[name]]
            old = before.vertices.get(name) if before is not None else None
            if old is not None and _same_form(old, vertex):
                continue
            rows = given.filter(node=name).order_by("visit", "round")
            for run in last_visit(rows) or ():
                if run.status == StepStatus.SKIPPED:
                    continue  # a step that is passed over may be given anything
                try:
                    decode(result_form(vertex, run), run.result)
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


def _known_plan(pinned: Definition) -> Plan | None:
    """The plan of the version that it is on, if the running code still has it."""
    try:
        found: Any = registry.find_definition(pinned.name, pinned.version)
    except UnknownDefinition:
        return None
    plan: Plan | None = found.static
    return plan


def _give_up(instance: ProcessInstance, steps: list[str]) -> None:
    """Supersedes the visits of steps that the other version does not have."""
    rows = instance.step_runs.filter(node__in=steps)
    rows.update(status=StepStatus.SUPERSEDED, blocked="", blocked_on="")


def _requeue_given_up(change: WorkflowChange) -> None:
    """Moves visits that a failure cancelled, and a retry may revive, to the queues of the other version."""
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
