"""Every action that programs can do, told by the actions themselves: where it is posted to, and what it is told."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.urls import reverse

from monitoring.actions import FIELDS
from orchestrator.engine.operations import (
    OPERATIONS,
    Operation,
    rename_view,
    save_view,
    send,
    start_bulk,
)
from orchestrator.models import (
    AccessToken,
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    SavedView,
    StepRun,
)

OF_FORM = {
    save_view.name: ("name", "query", "team"),
    rename_view.name: ("name",),
    send.name: ("event_id", "definition", "process", "field-…"),
    start_bulk.name: (
        "shown",
        "shown_at",
        "exact",
        "limits",
        "samples",
        "batch",
        "rate",
        "per_key",
        "stop_above",
    ),
}
"""What forms ask for that are made for one action."""


def described() -> list[dict[str, Any]]:
    """All of them, in the order of their names."""
    return [
        {
            "action": name,
            "label": str(operation.label),
            "permission": operation.permission,
            "method": "POST",
            "address": address_of(operation),
            "fields": fields_of(operation),
        }
        for name, operation in sorted(OPERATIONS.items())
        if operation.by_rest
    ]


def fields_of(operation: Operation) -> list[str]:
    """The fields of an action's form; one in brackets may be left out."""
    reason = "reason" if operation.asks_reason else "[reason]"
    given = [
        one.name if FIELDS[one.form]().required else f"[{one.name}]"
        for one in operation.given
    ]
    return ["key", "[revision]", reason, *given, *OF_FORM.get(operation.name, ())]


def address_of(operation: Operation) -> str:
    """Where an action is posted to, as a pattern.

    Raises:
        LookupError: no program can do it.
    """
    if operation.name in ADDRESSES:
        route, rest = ADDRESSES[operation.name]
        return reverse(f"monitoring:{route}") + rest
    kind = StepRun if getattr(operation, "on_step", False) else operation.model
    if kind not in ROUTES or not operation.by_rest:
        raise LookupError(f"{operation.name} has no address for programs")
    route, places = ROUTES[kind]
    filled = [filler for _place, filler in places]
    found = reverse(f"monitoring:{route}", args=[*filled, operation.name])
    for place, filler in places:
        found = found.replace(f"/{filler}/", f"/{place}/")
    return found


ADDRESSES = {
    send.name: ("api-send-event", "?type={type}"),
    start_bulk.name: ("api-begin-operation", "?action={action}&…"),
    save_view.name: ("api-save-view", ""),
}
"""The routes of actions that are done to nothing that there is, each with what follows in the address."""

PROCESS = ("{process}", "00000000-0000-0000-0000-000000000000")

ROUTES: dict[type[Model], tuple[str, list[tuple[str, str]]]] = {
    ProcessInstance: ("api-act", [PROCESS]),
    StepRun: ("api-act-on-step", [PROCESS, ("{visit}", "0")]),
    InboxEvent: ("api-act-on-event", [("{event}", "0")]),
    SavedView: ("api-act-on-view", [("{view}", "0")]),
    AccessToken: ("api-act-on-token", [("{token}", "0")]),
    BulkOperation: (
        "api-act-on-bulk",
        [("{operation}", "00000000-0000-0000-0000-000000000000")],
    ),
    Incident: ("api-act-on-failures", [("{cause}", "CAUSE")]),
}
"""The routes of the others, by what they are done to, each with what stands for one of it."""
