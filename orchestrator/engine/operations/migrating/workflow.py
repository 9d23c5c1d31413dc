"""Migrating a workflow's process to another version. The process fits if its history is one of that version too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.definition.codec import encode
from orchestrator.definition.declarations.migrating import migrate_data
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.workflows.settling import fill_windows
from orchestrator.engine.change.workflows.visits import queue_of
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.migrating.history_fit import HistoryFit
from orchestrator.engine.operations.migrating.plan import (
    BUSY,
    MigrationTarget,
    check_key_kept,
)
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.sql.tables import outside_ids
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.settled_visits import History
from orchestrator.engine.storage.switches import switches_of
from orchestrator.exceptions import InvalidDefinition, InvalidMessage, NotMigrated
from orchestrator.models import Blocked, Definition, ProcessInstance, StepStatus
from orchestrator.text import Text


@dataclass(frozen=True)
class WorkflowMigration:
    """The steps in which a workflow's process stands in another version.

    Args:
        pin: the input, the graph and the stored row of the other version.
        mapping: the steps of the other version, by those of the present one.
        open: the steps with open visits.
        given_up: the visited steps that the other version does not have.
        pinned: the stored row of the present version.
    """

    pin: Pin
    mapping: Mapping[str, str]
    open: list[str]
    given_up: list[str]
    pinned: Definition

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The open steps, each with its step in the other version."""
        return [(name, self.mapping[name]) for name in self.open]

    def carry_out(self, press: Press) -> dict[str, Any]:
        """Migrate the locked process in one change; return further values for the audit row."""
        instance, pin = press.process, self.pin
        queue = pin.definition.queue
        change = WorkflowChange(instance, press.cause, press.now, pin.plan, queue)
        renamed = {old: new for old, new in self.mapping.items() if old != new}
        self._requeue_open(change)
        _give_up(instance, self.given_up)
        _rename(instance, renamed)
        _requeue_given_up(change)
        fill_windows(change)
        pinned = pin.row()
        definitions.keep_secrets(pinned, self.pinned)
        change.pin(pinned)
        given = {"input": pin.data} if pin.data != instance.data else {}
        self._carry_input(change)
        instance.step = renamed.get(instance.step, instance.step)
        change.write()
        return {"steps": renamed, **given}

    def _carry_input(self, change: WorkflowChange) -> None:
        """Stores the input as the other version reads it, with its summary and its ids of the outside."""
        instance, pin = change.instance, self.pin
        if pin.data != instance.data:
            instance.data = change.extra["data"] = pin.data
        instance.summary = change.extra["summary"] = secret_values.summarize(
            pin.definition, pin.input, pin.data
        )
        ids = outside_ids.renewals(instance, pin.definition, encode(pin.input))
        change.writes += ids

    def _requeue_open(self, change: WorkflowChange) -> None:
        """Moves the open visits to the queues of the other version.

        Raises:
            NotMigrated: a worker has claimed one of them meanwhile.
        """
        rows = change.instance.step_runs.filter(finished_at=None)
        number = 0
        for name, status in rows.filter(item=None).values_list("node", "status"):
            change.steps[self.mapping[name]] = status
        for name in self.open:
            vertex = self.pin.plan[self.mapping[name]]
            queue = queue_of(vertex.step, change.queue)
            number += rows.filter(node=name, owner="").update(queue=queue)
            change.to_wake.add(queue)
        if number != change.instance.open_steps:
            raise NotMigrated(
                Text("a worker has just taken one of its steps: try again")
            )


def plan_workflow_migration(
    instance: ProcessInstance, target: MigrationTarget
) -> WorkflowMigration:
    """Return the migration of a process, not carried out.

    Raises:
        NotMigrated: the process does not fit the other version now.
        Exception: raised by the application's code.
    """
    allow_idle(LONG_IDLE)
    _check_unclaimed(instance)
    pin = _pin(instance, target)
    mapping, given_up = _mapping(instance, target, pin.plan)
    history = History(instance, mapping)
    fit = HistoryFit(instance, target, pin.plan, history, mapping)
    if reason := next(fit.reasons(), ""):
        raise NotMigrated(reason)
    now = [run.node for run in history.runs if run.finished_at is None]
    before = {new: name for name, new in mapping.items()}
    opened = [before[name] for name in dict.fromkeys(now)]
    return WorkflowMigration(pin, mapping, opened, given_up, target.pinned)


def _mapping(
    instance: ProcessInstance, target: MigrationTarget, plan: Plan
) -> tuple[Mapping[str, str], list[str]]:
    """The mapping of steps, and the visited steps that the other version does not have."""
    rows = instance.step_runs.order_by().values_list("node", flat=True).distinct()
    visited = set(rows)
    old = visited | {node["id"] for node in target.pinned.graph["nodes"]}
    mapping = target.row.mapping(sorted(old), plan.vertices, target.chosen)
    _check_one_to_one(mapping, visited)
    given_up = sorted(visited - mapping.keys())
    _check_names(given_up, plan)
    return mapping, given_up


def _check_unclaimed(instance: ProcessInstance) -> None:
    """Refuses while a worker runs one of its steps, with the function of the present version."""
    held = instance.step_runs.filter(finished_at=None).exclude(owner="").first()
    if held is not None:
        raise NotMigrated(BUSY.filled(held.node))


def _pin(instance: ProcessInstance, target: MigrationTarget) -> Pin:
    """The input as the other version reads it, and the graph of the other version for this input."""
    definition: Any = target.definition
    ours = (InvalidDefinition, InvalidMessage, NotMigrated)
    with ApplicationCall(target.definition.name, ours):
        made = migrate_data(definition.Input, instance.data, target.row)
        check_key_kept(definition, instance, made)
        try:
            pin = definitions.make_pin(definition, made)
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
    """Refuses a mapping of two visited steps to one step."""
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
    """Refuses to give up the visits of a step if another step of the other version has its name."""
    for name in given_up:
        if name in plan.vertices:
            raise NotMigrated(
                "%(step)s was visited, and another step there has its name", name
            )


def _give_up(instance: ProcessInstance, steps: list[str]) -> None:
    """Supersedes the visits of steps."""
    rows = instance.step_runs.filter(node__in=steps)
    rows.update(status=StepStatus.SUPERSEDED, blocked="", blocked_on="")


def _requeue_given_up(change: WorkflowChange) -> None:
    """Moves the visits that a failure has cancelled to the queues of the other version: a retry may revive them."""
    cancelled = {"status": StepStatus.CANCELLED, "blocked": Blocked.FAILURE}
    rows = change.instance.step_runs.filter(**cancelled)
    for name in set(rows.values_list("node", flat=True)):
        queue = queue_of(change.plan[name].step, change.queue)
        rows.filter(node=name).update(queue=queue)


def _rename(instance: ProcessInstance, names: Mapping[str, str]) -> None:
    """Gives the visits the new names of their steps, by way of names that no step has: two steps may swap names."""
    rows = instance.step_runs
    between = {old: f" {number}" for number, old in enumerate(sorted(names))}
    for column in ("node", "blocked_on"):
        for old, name in between.items():
            rows.filter(**{column: old}).update(**{column: name})
        for old, name in between.items():
            rows.filter(**{column: name}).update(**{column: names[old]})
