"""Masking of data: secrets are masked for all users, and other data is for users with the permission.

A value under a secret name is masked when it is read, so that no page, file, message or live answer has it. Users with
the permission see it through an audited action (`views.revealing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from django.utils.translation import gettext as _

from monitoring.base.access import DATA, EVENTS, REVEAL
from monitoring.base.graphs import running_class
from orchestrator import secret_names
from orchestrator.definition import Workflow
from orchestrator.definition.codec.declared_order import in_declared_order
from orchestrator.definition.secrets import MASK, mask_fields
from orchestrator.grants import definitions_of
from orchestrator.models import (
    BulkOperation,
    Checkpoint,
    Definition,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Repair,
    StepRun,
)


def sees_data(user: Any) -> bool:
    """Whether a user may see the data of processes: data, events, commands and results."""
    return bool(user.has_perm(DATA))


def may_reveal(user: Any, *definitions: str) -> bool:
    """Whether a user may see the secrets of these definitions; without arguments, of all definitions."""
    mine = definitions_of(user, REVEAL)
    return mine is None or (bool(definitions) and mine.issuperset(definitions))


def names_of(definition: Definition | None) -> frozenset[str]:
    """Return the names of the secret fields of a definition's processes."""
    if definition is None:
        return frozenset()
    return secret_names.definition_secrets(definition).names


def data_of(instance: ProcessInstance) -> Any:
    """Return the data of a process, with its fields in the order of their declaration."""
    known, data = running_class(instance.definition), instance.data
    if known is not None:
        form = known.Input if issubclass(known, Workflow) else known.Data
        data = in_declared_order(form, data)
    return mask_fields(data, names_of(instance.definition))


def event_body(event: InboxEvent, definition: Definition | None = None) -> Any:
    """Return the body of an event.

    Args:
        event: the event; without `definition` its process is read too.
        definition: of its process, where the caller has it.
    """
    body, names = secret_names.shown_message(event.type, event.body, of_command=False)
    if definition is not None:
        return mask_fields(body, names | names_of(definition))
    process = _process_of(event)
    if process is not None:
        names |= names_of(process.definition)
    elif event.target:
        names |= secret_names.code_secrets(event.target).names
    return mask_fields(body, names)


def _process_of(event: InboxEvent) -> ProcessInstance | None:
    """Return the process of an event; None without one, also where the event names a process that does not exist."""
    try:
        return event.process
    except ProcessInstance.DoesNotExist:
        return None


def command_body(command: IssuedCommand, definition: Definition | None = None) -> Any:
    """Return the body of a command; without `definition` its process is read too."""
    if definition is None and command.instance is not None:
        definition = command.instance.definition
    body, names = secret_names.shown_message(
        command.type, command.body, of_command=True
    )
    return mask_fields(body, names | names_of(definition))


def masked_row(row: Any, *, sees: bool) -> Any:
    """Return a row to show, and never to save: without secrets, and without data for users who may not see data.

    A checksum of a secret is masked too, since it allows guessing the value.
    """
    columns = {name: getattr(row, name) for name in VALUES.get(type(row), ())}
    for name, value in columns.items():
        told = _shown_value(row, name, value) if sees else _("not yours to see")
        setattr(row, name, told if value is not None else None)
        if told != value:
            for checksum in ("checksum", "body_hash"):
                if hasattr(row, checksum):
                    setattr(row, checksum, MASK)
    return row


VALUES: dict[type[Any], tuple[str, ...]] = {
    ProcessInstance: ("data",),
    Checkpoint: ("data",),
    StepRun: ("result", "saved", "element"),
    InboxEvent: ("body",),
    IssuedCommand: ("body",),
    OperatorAction: ("before", "after"),
    Repair: ("edits",),
    BulkOperation: ("given", "about"),
}
"""The columns of tables that hold the application's values."""


def _shown_value(row: Any, name: str, value: Any) -> Any:
    if isinstance(row, InboxEvent):
        return event_body(row)
    if isinstance(row, IssuedCommand):
        return command_body(row)
    if isinstance(row, BulkOperation):  # what it is done to may be of any definition
        return (
            value if name == "about" else mask_fields(value, secret_names.all_secrets())
        )
    definition = (
        row.definition
        if isinstance(row, ProcessInstance)
        else row.instance and row.instance.definition
    )
    if isinstance(row, OperatorAction):
        return masked_action(value, definition)
    if isinstance(row, Repair):
        return masked_action({"edits": value}, definition)["edits"]
    if (
        name == "element"
        and row.node in secret_names.definition_secrets(definition).elements
    ):
        return MASK
    return mask_fields(value, names_of(definition))


def visible_selection(operation: BulkOperation, reader: Any) -> dict[str, Any]:
    """Return the selection of an operation on many; None stands for a value that the user may not see."""
    about: dict[str, Any] = operation.about
    if operation.selection == "events" and not reader.has_perm(EVENTS):
        return dict.fromkeys(about)
    if "where" in about and not sees_data(reader):
        return {**about, "where": None}
    return about


TELLING = frozenset({"data", "edits", "input", "results", "skipped"})
"""The keys of the audit with values of the application: data, edits of a repair, inputs, given results."""


def names_in(told: Any, definition: Definition | None) -> frozenset[str]:
    """Return the secret names in an audit entry; where its process is gone, all secret names."""
    if definition is None and not tells_data(told):
        return frozenset()
    names = names_of(definition) if definition else secret_names.all_secrets()
    edits = told.get("edits", ()) if isinstance(told, Mapping) else ()
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, Mapping) and edit.get("edit") == "event":
            names |= secret_names.message_secrets(str(edit.get("target", "")))
    return names


def masked_action(told: Any, definition: Definition | None) -> Any:
    """Return the `before` or `after` of an audit entry, without secrets."""
    names = names_in(told, definition)
    if not (names and isinstance(told, Mapping)):
        return told
    return {
        name: mask_fields(value, names) if name in TELLING else value
        for name, value in told.items()
    }


def tells_data(told: Any) -> bool:
    """Whether an audit entry has values of the application."""
    if not isinstance(told, Mapping):
        return False
    skipped, about = told.get("skipped"), told.get("about")
    if isinstance(skipped, Mapping) or (
        isinstance(about, Mapping) and "where" in about
    ):
        return True
    return not (TELLING - {"skipped"}).isdisjoint(told)


def merge_secrets(
    given: Any, stored: Any, names: Iterable[str], *, may: bool, path: str = ""
) -> tuple[Any, list[str]]:
    """Return a value as a person has edited it, with each mask replaced by the stored secret.

    Args:
        given: the edited value.
        stored: the stored value.
        names: of the secret fields.
        may: whether the person may see secrets, and so may write them.
        path: of the value.

    Returns:
        The value, and the paths of secrets that the person wrote without permission.
    """
    wanted = frozenset(names)
    below = f"{path}." if path else ""
    if isinstance(given, dict):
        known = stored if isinstance(stored, dict) else {}
        return _merge_object(given, known, wanted, below, may=may)
    if isinstance(given, list):
        parts = stored if isinstance(stored, list) else []
        pairs = [
            merge_secrets(value, old, wanted, may=may, path=f"{below}{place}")
            for place, (value, old) in enumerate(
                zip_longest(given, parts[: len(given)])
            )
        ]
        return [value for value, _ in pairs], [one for _, some in pairs for one in some]
    return given, []


def _merge_object(
    given: Any, known: Any, wanted: frozenset[str], below: str, *, may: bool
) -> tuple[Any, list[str]]:
    """Merge the members of an object; a missing secret counts as written."""
    merged, wrong = {}, list[str]()
    for name, value in given.items():
        if name in wanted and value == MASK and name in known:
            merged[name] = known[name]
            continue
        path = f"{below}{name}"
        wrong += [path] if name in wanted and not may else []
        merged[name], inner = merge_secrets(
            value, known.get(name), wanted, may=may, path=path
        )
        wrong += inner
    lost = [] if may else [one for one in known if one in wanted and one not in given]
    return merged, wrong + [f"{below}{one}" for one in lost]
