"""The stored definition of an instance, its class and plan in the running code, and its input, read once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.containers import LruCache
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.annotations import hints, is_immutable
from orchestrator.definition.codec import (
    decode_text,
    digest,
    encode,
    limited_digest,
)
from orchestrator.definition.graph import Graph
from orchestrator.definition.secrets import Secrets
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.storage.stored_values import read_stored
from orchestrator.exceptions import (
    InvalidDefinition,
    InvalidMessage,
    UnknownDefinition,
)
from orchestrator.models import Definition, ProcessInstance
from orchestrator.registry import DefinitionClass

SPREAD = 8
"""About the bytes in memory for one byte of JSON text, as values and as text."""

LEAST_BYTES = 2_000

OF_GRAPH = (InvalidDefinition, InvalidMessage)
"""The engine's own errors about a graph that a function of the application makes."""


@lru_cache(1000)
def immutable_fields(form: Any) -> frozenset[str]:
    """Return the names of an input's fields whose values are immutable."""
    return frozenset(name for name, hint in hints(form).items() if is_immutable(hint))


class Input:
    """The input of one process. Each step gets values that no other step can change.

    Immutable values are shared; all others are decoded anew for each step from the text of their field.

    Args:
        form: the workflow's `Input`.
        body: the input as JSON values.

    Raises:
        UnreadableValue: the running code cannot read the input.
    """

    def __init__(self, form: type[Any], body: Any) -> None:
        self._form: Any = form
        self._value = read_stored(form, body, form.__qualname__)
        self._text = json.dumps(body)
        self._texts: dict[str, str | None] = {}
        self.size = LEAST_BYTES + SPREAD * len(self._text)
        """About the bytes that it takes in memory."""

    def whole(self) -> Any:
        """Return the whole input."""
        if is_immutable(self._form):
            return self._value
        return decode_text(self._form, self._text)

    def field(self, name: str) -> Any:
        """Return one field of the input."""
        hint = hints(self._form)[name]
        if name in immutable_fields(self._form):
            return getattr(self._value, name)
        if name not in self._texts:
            self._texts[name] = self._text_of(name, hint)
        text = self._texts[name]
        return getattr(self.whole(), name) if text is None else decode_text(hint, text)

    def _text_of(self, name: str, hint: Any) -> str | None:
        """The text of a field; None where the class converts the field itself."""
        body = json.loads(self._text)
        if name not in body:
            return None
        text = json.dumps(body[name])
        try:
            alike = decode_text(hint, text) == getattr(self._value, name)
        except InvalidMessage:
            return None
        return text if alike else None


_rows: dict[DefinitionClass, int] = {}
_known: dict[int, tuple[int, str]] = {}

BYTES = 100_000_000
"""About the most memory of all cached plans, and of all cached inputs. The one used last stays, whatever its size."""

STEP_BYTES, LINK_BYTES = 2_000, 450
"""The memory of a plan for each step and for each link, as measured."""

PROCESSES = 20_000
"""The number of processes whose input's checksum is cached."""

Began = tuple[UUID, datetime, int]
"""A process in the caches: its id, its start, and the key of its definition."""

Made = tuple[type[Workflow], str]
"""The origin of a plan: the class, and the checksum of the input.

The functions and policies of the steps may depend on the input, which neither the graph nor its fingerprint shows.
"""


def plan_size(plan: Plan) -> int:
    """Return about how many bytes a plan takes in memory."""
    return STEP_BYTES * len(plan.vertices) + LINK_BYTES * len(plan.links)


_plans = LruCache[Made, Plan](BYTES, plan_size)
_checksums = LruCache[Began, str](PROCESSES)
_inputs = LruCache[Began, Input](BYTES, lambda input: input.size)

STORED_AS = f"SELECT version, kind FROM {Definition._meta.db_table} WHERE id = %s"  # noqa: S608  # its own name


def row_key(definition: DefinitionClass) -> int:
    """Return the key of a definition's row, which is made at its first use."""
    if definition in _rows:
        return _rows[definition]
    pk = _stored(_columns(definition.graph(), definition.secrets()))
    _note_secrets(definition)
    _once_committed(lambda: _rows.update({definition: pk}))
    return pk


@dataclass(frozen=True)
class Pin:
    """The workflow, input and plan of a new process.

    Args:
        definition: the workflow.
        input: its input.
        data: the same as JSON values.
        plan: its plan.
        columns: the columns of the row for a graph made from the input; None for a workflow with a fixed graph.
    """

    definition: type[Workflow]
    input: Any
    data: dict[str, Any]
    plan: Plan
    columns: Mapping[str, Any] | None = None

    def row(self) -> int:
        """Return the key of its definition's row, which is stored in the running transaction if it is new."""
        if self.columns is None:
            return row_key(self.definition)
        return _stored(self.columns)


def make_pin(definition: type[Workflow], input: Any) -> Pin:
    """Return the pin of a new process with this input. A large graph takes its time.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored.
        InvalidDefinition: the graph made from the input contradicts itself.
        Exception: any error of the application's function that makes the graph, marked as such.
    """
    data = call_application(definition.name, encode, input, ours=OF_GRAPH)
    checksum = limited_digest(data)
    if definition.static is not None:
        return Pin(definition, input, data, definition.static)
    plan = _made(definition, checksum, lambda: input)
    columns = _columns(definition.graph(plan), definition.secrets(plan))
    return Pin(definition, input, data, plan, columns)


def plan_of(instance: ProcessInstance) -> Plan:
    """Return the plan of a workflow's instance.

    Raises:
        UnknownDefinition, InvalidDefinition, InvalidMessage: the running code has no plan for it.
        Exception: any error of the application's function that makes the graph, marked as such.
    """
    definition, process = workflow_of(instance), _began(instance)
    if definition.static is not None:
        return definition.static
    checksum = _checksums.get(process)
    if checksum is None:
        checksum = found = digest(instance.data)
        _once_committed(lambda: _checksums.keep(process, found))
    return _made(definition, checksum, lambda: _read_input(definition, instance))


def _read_input(definition: type[Workflow], instance: ProcessInstance) -> Any:
    form = definition.Input
    return read_stored(form, instance.data, form.__qualname__)


def has_plan(instance: ProcessInstance) -> bool:
    """Whether the plan of an instance is fixed or cached, so that the application's function need not make it.

    Raises:
        UnknownDefinition: the running code no longer has its definition.
    """
    definition = workflow_of(instance)
    if definition.static is not None:
        return True
    checksum = _checksums.get(_began(instance))
    return checksum is not None and _plans.get((definition, checksum)) is not None


def _made(definition: type[Workflow], checksum: str, input: Callable[[], Any]) -> Plan:
    """The plan that a class makes from an input with this checksum."""
    plan = _plans.get((definition, checksum))
    if plan is None:
        allow_idle(LONG_IDLE)
        make, given = definition.plan, input()
        plan = call_application(definition.name, make, given, ours=OF_GRAPH)
        _plans.keep((definition, checksum), plan)
    return plan


def input_of(instance: ProcessInstance) -> Input:
    """Return the input of a workflow's instance, which never changes: it is read once, while the cache has room for it.

    Raises:
        UnknownDefinition: the running code no longer has the workflow.
        UnreadableValue: the running code cannot read the input.
    """
    process = _began(instance)
    known = _inputs.get(process)
    if known is None:
        known = found = Input(workflow_of(instance).Input, instance.data)
        _once_committed(lambda: _inputs.keep(process, found))
    return known


def forget_input(instance: ProcessInstance) -> None:
    """Drop the cached input of a process: after a failure a person may have repaired the row."""
    _inputs.drop(_began(instance))


def _began(instance: ProcessInstance) -> Began:
    """The key of a process in the caches. A later process may have its id, and another version may read its input in
    another way.
    """
    return instance.pk, instance.started_at, instance.definition_id


def definition_of(instance: ProcessInstance) -> DefinitionClass:
    """Return the class of an instance's definition.

    Raises:
        UnknownDefinition: the running code no longer has it.
    """
    return registry.find_definition(instance.name, _stored_as(instance)[0])


def manager_of(instance: ProcessInstance) -> type[ProcessManager]:
    """Return the same for an instance that must be of a process manager."""
    found = definition_of(instance)
    if not issubclass(found, ProcessManager):
        raise UnknownDefinition(
            "%(name)s is no longer a process manager", instance.name
        )
    return found


def workflow_of(instance: ProcessInstance) -> type[Workflow]:
    """Return the same for an instance that must be of a workflow."""
    found = definition_of(instance)
    if not issubclass(found, Workflow):
        raise UnknownDefinition("%(name)s is no longer a workflow", instance.name)
    return found


def runs_workflow(instance: ProcessInstance) -> bool:
    """Whether a process is a workflow, also where the running code no longer has its definition."""
    return _stored_as(instance)[1] == Definition.Kind.WORKFLOW


def _stored_as(instance: ProcessInstance) -> tuple[int, str]:
    """Version and kind of an instance's stored definition, which never change.

    One transaction asks for them again and again, so the query is a constant.
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
    """Cache stored values after the commit only: this transaction may still roll back, and its keys may recur. A test
    case may call the hooks of commits although its own transaction goes on.
    """
    transaction.on_commit(lambda: None if connection.in_atomic_block else remember())


def _columns(graph: Graph, secrets: Secrets) -> dict[str, Any]:
    body = graph.to_json()
    return {
        "name": graph.name,
        "version": graph.version,
        # The same as `graph.fingerprint`, which would write the graph once more.
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
    """Add the secret fields of a process's earlier version to its new stored definition.

    The process's history still has that version's data, and the running code may no longer have its class.
    """
    if found := Secrets.from_json(before.secrets):
        _add_secrets(Definition.objects.filter(pk=pk).defer("graph"), found)


def _note_secrets(definition: DefinitionClass) -> None:
    """Add a definition's secret fields to its stored versions: a mark also covers values that are stored already."""
    if found := definition.secrets():
        others = Definition.objects.filter(name=definition.name).defer("graph")
        _add_secrets(others, found)


def _add_secrets(rows: Iterable[Definition], secrets: Secrets) -> None:
    for row in rows:
        said = (Secrets.from_json(row.secrets) | secrets).to_json()
        if said != (row.secrets or {}):
            Definition.objects.filter(pk=row.pk).update(secrets=said)


def forget_definitions() -> None:
    """Clear all caches of stored definitions; for a database that was emptied."""
    _rows.clear()
    _plans.clear()
    _checksums.clear()
    _inputs.clear()
    _known.clear()


def store_definitions() -> None:
    """Store every definition of the running code that is not stored yet."""
    for definition in registry.definitions.values():
        if issubclass(definition, ProcessManager) or definition.static is not None:
            row_key(definition)
