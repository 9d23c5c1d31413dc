"""Which stored definition an instance is pinned to, and which class and plan of the running code that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestrator import registry
from orchestrator.collecting import LruCache
from orchestrator.conf import conf
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode, digest, encode, seal
from orchestrator.definition.graph import Graph
from orchestrator.definition.secrets import Secrets
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.storage import idle_limit
from orchestrator.engine.storage.inputs import Input
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition, ProcessInstance
from orchestrator.registry import DefinitionClass

_rows: dict[DefinitionClass, int] = {}
_known: dict[int, tuple[int, str]] = {}

BYTES = 100_000_000
"""How much memory the plans take in all, about, and the inputs. The one used last is kept whatever it takes."""

STEP_BYTES, LINK_BYTES = 2_000, 450
"""What a plan takes for each step and for each link, as measured."""

PROCESSES = 20_000
"""Of how many processes is known which input they have."""

Began = tuple[UUID, datetime, int]
"""Which process: its id, when it began, and the key of the definition that it is on."""

Made = tuple[type[Workflow], str]
"""What a plan was made of: the class, and the checksum of the input.

The functions and policies of its steps may depend on that, which neither the graph nor its fingerprint tells.
"""


def plan_size(plan: Plan) -> int:
    """About how many bytes a plan takes in memory."""
    return STEP_BYTES * len(plan.vertices) + LINK_BYTES * len(plan.links)


_plans = LruCache[Made, Plan](BYTES, plan_size)
_checksums = LruCache[Began, str](PROCESSES)
_inputs = LruCache[Began, Input](BYTES, lambda input: input.size)

STORED_AS = f"SELECT version, kind FROM {Definition._meta.db_table} WHERE id = %s"  # noqa: S608  # its own name


def row_of(definition: DefinitionClass) -> int:
    """The key of a definition's row; made at its first use."""
    if definition in _rows:
        return _rows[definition]
    pk = _stored(_columns(definition.graph(), definition.secrets()))
    _note_secrets(definition)
    _once_committed(lambda: _rows.update({definition: pk}))
    return pk


@dataclass(frozen=True)
class Pin:
    """What a new process of a workflow begins with.

    Args:
        definition: the workflow.
        input: its input.
        data: the same as JSON values.
        plan: what it runs on.
        columns: of the row for the graph made from its input; None of a workflow whose graph is always the same.
    """

    definition: type[Workflow]
    input: Any
    data: dict[str, Any]
    plan: Plan
    columns: Mapping[str, Any] | None = None

    def row(self) -> int:
        """The key of its row, which is stored in the running transaction if it is new."""
        if self.columns is None:
            return row_of(self.definition)
        return _stored(self.columns)


def pin(definition: type[Workflow], input: Any) -> Pin:
    """What a new process with this input begins with. Of a large graph it takes its time.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored.
        InvalidDefinition: the graph made from the input contradicts itself.
    """
    data = encode(input)
    checksum = seal(data)
    if definition.static is not None:
        return Pin(definition, input, data, definition.static)
    plan = _made(definition, checksum, lambda: input)
    columns = _columns(definition.graph(plan), definition.secrets(plan))
    return Pin(definition, input, data, plan, columns)


def plan_of(instance: ProcessInstance) -> Plan:
    """The plan an instance of a workflow runs on.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    definition, process = workflow_of(instance), _began(instance)
    if definition.static is not None:
        return definition.static
    checksum = _checksums.get(process)
    if checksum is None:
        checksum = found = digest(instance.data)
        _once_committed(lambda: _checksums.keep(process, found))
    return _made(definition, checksum, lambda: decode(definition.Input, instance.data))


def is_at_hand(instance: ProcessInstance) -> bool:
    """Whether the plan an instance runs on need not be made by the application's function.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    definition = workflow_of(instance)
    if definition.static is not None:
        return True
    checksum = _checksums.get(_began(instance))
    return checksum is not None and _plans.get((definition, checksum)) is not None


def _made(definition: type[Workflow], checksum: str, input: Callable[[], Any]) -> Plan:
    """The plan that a class makes of an input with this checksum."""
    plan = _plans.get((definition, checksum))
    if plan is None:
        idle_limit.allow(idle_limit.LONG)
        plan = definition.plan(input())
        _plans.keep((definition, checksum), plan)
    return plan


def input_of(instance: ProcessInstance) -> Input:
    """The input of an instance of a workflow, which never changes: it is read once, as long as there is room for it.

    Raises:
        UnknownDefinition: the running code no longer has the workflow.
        InvalidMessage: the input does not have the form that the running code declares.
    """
    process = _began(instance)
    known = _inputs.get(process)
    if known is None:
        known = found = Input(workflow_of(instance).Input, instance.data)
        _once_committed(lambda: _inputs.keep(process, found))
    return known


def read_again(instance: ProcessInstance) -> None:
    """Has the input of a process read anew: something has failed, and somebody may have mended the row."""
    _inputs.drop(_began(instance))


def _began(instance: ProcessInstance) -> Began:
    """What one process is known by for as long as workers live: after it was removed another may have its id, and
    another version may read its input in another way.
    """
    return instance.pk, instance.started_at, instance.definition_id


def definition_of(instance: ProcessInstance) -> DefinitionClass:
    """The class an instance runs on.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    return registry.find_definition(instance.name, _stored_as(instance)[0])


def manager_of(instance: ProcessInstance) -> type[ProcessManager]:
    """The same for an instance that must be of a process manager."""
    found = definition_of(instance)
    if not issubclass(found, ProcessManager):
        raise UnknownDefinition(
            "%(name)s is no longer a process manager", instance.name
        )
    return found


def workflow_of(instance: ProcessInstance) -> type[Workflow]:
    """The same for an instance that must be of a workflow."""
    found = definition_of(instance)
    if not issubclass(found, Workflow):
        raise UnknownDefinition("%(name)s is no longer a workflow", instance.name)
    return found


def is_workflow(instance: ProcessInstance) -> bool:
    """Whether a process is a workflow, also where the running code no longer has its definition."""
    return _stored_as(instance)[1] == Definition.Kind.WORKFLOW


def _stored_as(instance: ProcessInstance) -> tuple[int, str]:
    """Version and kind of an instance's stored definition, which never change.

    Inside one transaction it is asked again and again, so nothing is composed.
    """
    pk = instance.definition_id
    known = _known.get(pk)
    if known is None and ProcessInstance.definition.is_cached(instance):
        return instance.definition.version, instance.definition.kind
    if known is None:
        with connection.cursor() as cursor:
            cursor.execute(STORED_AS, [pk])
            known = found = cursor.fetchone()
        _once_committed(lambda: _known.update({pk: found}))
    return known


def _once_committed(remember: Callable[[], None]) -> None:
    """Remembers something of the tables once it is known to stay: this transaction may still roll back, and its keys
    come again. A test case may call the hooks of commits although its own transaction goes on.
    """
    transaction.on_commit(lambda: None if connection.in_atomic_block else remember())


def _columns(graph: Graph, secrets: Secrets) -> dict[str, Any]:
    body = graph.to_json()
    return {
        "name": graph.name,
        "version": graph.version,
        # As the graph's own, which would write it once more.
        "fingerprint": digest(body),
        "defaults": {
            "kind": graph.kind,
            "graph": body,
            "secrets": secrets.to_json(),
            "code_revision": conf().CODE_REVISION,
        },
    }


def _stored(columns: Mapping[str, Any]) -> int:
    row, _ = Definition.objects.get_or_create(**columns)
    _add_secrets([row], Secrets.from_json(columns["defaults"]["secrets"]))
    return row.pk


def keep_secrets(pk: int, before: Definition) -> None:
    """Has a stored definition say what is secret in the version from which a process comes over to it.

    The process's history still has that version's data, and the running code may not have its class any more.
    """
    if found := Secrets.from_json(before.secrets):
        _add_secrets(Definition.objects.filter(pk=pk).defer("graph"), found)


def _note_secrets(definition: DefinitionClass) -> None:
    """Has all that is stored of a definition say which fields are secret: a mark counts for what is stored already."""
    if found := definition.secrets():
        others = Definition.objects.filter(name=definition.name).defer("graph")
        _add_secrets(others, found)


def _add_secrets(rows: Iterable[Definition], secrets: Secrets) -> None:
    for row in rows:
        said = (Secrets.from_json(row.secrets) | secrets).to_json()
        if said != (row.secrets or {}):
            Definition.objects.filter(pk=row.pk).update(secrets=said)


def forget() -> None:
    """Drops what is remembered of the tables; for a database that was emptied."""
    _rows.clear()
    _plans.clear()
    _checksums.clear()
    _inputs.clear()
    _known.clear()


def store_all() -> None:
    """Stores every definition of the running code that is not stored yet."""
    for definition in registry.definitions.values():
        if issubclass(definition, ProcessManager) or definition.static is not None:
            row_of(definition)
