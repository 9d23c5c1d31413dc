"""Which stored definition an instance is pinned to, and which class and plan of the running code that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection, transaction

from orchestrator import registry
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode
from orchestrator.definition.graph import Graph
from orchestrator.definition.workflow.plan import Plan
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition, ProcessInstance
from orchestrator.registry import Declared

_rows: dict[Declared, int] = {}
_plans: dict[int, Plan] = {}
_known: dict[int, tuple[int, str]] = {}

STEPS = 50_000
"""How many steps the plans made from an input have in all that a process keeps."""


def row_of(definition: Declared) -> int:
    """The key of a definition's row; made at its first use."""
    if definition in _rows:
        return _rows[definition]
    pk = _stored(definition.graph())
    _once_committed(lambda: _rows.update({definition: pk}))
    return pk


def pin(definition: type[Workflow], input: Any) -> tuple[int, Plan]:
    """The row and the plan for a new process with this input.

    Raises:
        InvalidDefinition: the graph made from the input contradicts itself.
    """
    plan = definition.plan(input)
    if definition.static is not None:
        return row_of(definition), plan
    pk = _stored(definition.graph(plan))
    _once_committed(lambda: _remember(pk, plan))
    return pk, plan


def plan_of(instance: ProcessInstance) -> Plan:
    """The plan an instance of a workflow runs on.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    definition = workflow_of(instance)
    if definition.static is not None:
        return definition.static
    plan = _plans.get(instance.definition_id)
    if plan is None:
        plan = made = definition.plan(decode(definition.Input, instance.data))
        _once_committed(lambda: _remember(instance.definition_id, made))
    return plan


def definition_of(instance: ProcessInstance) -> Declared:
    """The class an instance runs on.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    return registry.definition(instance.name, _stored_as(instance.definition_id)[0])


def manager_of(instance: ProcessInstance) -> type[ProcessManager]:
    """The same for an instance that must be of a process manager."""
    found = definition_of(instance)
    if not issubclass(found, ProcessManager):
        raise UnknownDefinition(f"{instance.name} is no longer a process manager")
    return found


def workflow_of(instance: ProcessInstance) -> type[Workflow]:
    """The same for an instance that must be of a workflow."""
    found = definition_of(instance)
    if not issubclass(found, Workflow):
        raise UnknownDefinition(f"{instance.name} is no longer a workflow")
    return found


def is_workflow(instance: ProcessInstance) -> bool:
    """Whether a process is a workflow, also where the running code no longer has its definition."""
    return _stored_as(instance.definition_id)[1] == Definition.Kind.WORKFLOW


def _stored_as(pk: int) -> tuple[int, str]:
    """Version and kind of a stored definition, which never change."""
    known = _known.get(pk)
    if known is None:
        row = Definition.objects.values_list("version", "kind")
        known = found = row.get(pk=pk)
        _once_committed(lambda: _known.update({pk: found}))
    return known


def _once_committed(remember: Callable[[], None]) -> None:
    """Remembers something of the tables once it is known to stay: this transaction may still roll back, and its keys
    come again. A test case may call the hooks of commits although its own transaction goes on.
    """
    transaction.on_commit(lambda: None if connection.in_atomic_block else remember())


def _stored(graph: Graph) -> int:
    row, _ = Definition.objects.get_or_create(
        name=graph.name,
        version=graph.version,
        fingerprint=graph.fingerprint(),
        defaults={"kind": graph.kind, "graph": graph.to_json()},
    )
    return row.pk


def _remember(pk: int, plan: Plan) -> None:
    room = STEPS - len(plan.vertices)
    while _plans and sum(len(one.vertices) for one in _plans.values()) > room:
        del _plans[next(iter(_plans))]
    _plans[pk] = plan


def forget() -> None:
    """Drops what is remembered of the tables; for a database that was emptied."""
    _rows.clear()
    _plans.clear()
    _known.clear()


def store_all() -> None:
    """Stores every definition of the running code that is not stored yet."""
    for definition in registry.definitions.values():
        if issubclass(definition, ProcessManager) or definition.static is not None:
            row_of(definition)
