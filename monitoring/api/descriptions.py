"""The actions for programs, from the classes of the actions: their addresses, fields and permissions."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.db.models import Model
from django.urls import reverse

from monitoring.api.routes import ACTING, PATHS
from monitoring.forms.action_forms import FIELDS, ActionForm, JsonField
from monitoring.forms.bulk_form import BulkForm
from monitoring.forms.send_form import SendForm
from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.processes.filters import Filters
from monitoring.views.actions.saved_views import NameForm
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

FORMS: dict[str, type[ActionForm]] = {
    save_view.name: NameForm,
    rename_view.name: NameForm,
    send.name: SendForm,
    start_bulk.name: BulkForm,
}
"""The forms that are made for one action."""

OF_FORM = {
    save_view.name: ("name", "query", "team"),
    rename_view.name: ("name",),
    send.name: ("event_id", "definition", "process", "field-…"),
    start_bulk.name: tuple(
        name for name in BulkForm.base_fields if name not in ActionForm.base_fields
    ),
}
"""The fields of these forms besides the common ones."""


def api_actions() -> list[Operation]:
    """Return all actions for programs, by name."""
    return [one for _name, one in sorted(OPERATIONS.items()) if one.by_rest]


def described_actions() -> list[dict[str, Any]]:
    """Return the actions as a list for programs."""
    return [
        {
            "action": operation.name,
            "label": str(operation.label),
            "permission": operation.permission,
            "method": "POST",
            "address": address_pattern(operation),
            "fields": form_field_names(operation),
        }
        for operation in api_actions()
    ]


def form_field_names(operation: Operation) -> list[str]:
    """Return the fields of an action's form; one in brackets may be left out."""
    reason = "reason" if operation.requires_reason else "[reason]"
    given = [
        one.name if FIELDS[one.form]().required else f"[{one.name}]"
        for one in operation.given
    ]
    return ["key", "[revision]", reason, *given, *OF_FORM.get(operation.name, ())]


def address_pattern(operation: Operation) -> str:
    """Return the pattern of the address to which a program posts an action.

    Raises:
        LookupError: the action is not for programs.
    """
    if operation.name in ADDRESSES:
        route, rest = ADDRESSES[operation.name]
        return _pattern(route) + rest
    kind = StepRun if getattr(operation, "on_step", False) else operation.model
    if kind not in ROUTES or not operation.by_rest:
        raise LookupError(f"{operation.name} has no address for programs")
    return _pattern(ROUTES[kind], operation.name)


def _pattern(route: str, action: str = "") -> str:
    """Return the address of a route as OpenAPI writes it: the names of its parts in braces."""
    root, path = reverse("monitoring:api"), PATHS[route]  # the first imports all routes
    return root + re.sub(r"\{\w+:", "{", path.replace("{slug:name}", action))


ADDRESSES = {
    send.name: ("api-send-event", "?type={type}"),
    start_bulk.name: ("api-begin-operation", "?action={action}&…"),
    save_view.name: ("api-save-view", ""),
}
"""The routes of actions without a target, each with the query of its address."""

CREATING = {
    send.name: ("api-events", 202),
    start_bulk.name: ("api-operations", 202),
    save_view.name: ("api-saved-views", 201),
}
"""The lists to which a program can post the same, each with the status of the answer."""

ROUTES: dict[type[Model], str] = {
    ProcessInstance: "api-act",
    StepRun: "api-act-on-step",
    InboxEvent: "api-act-on-event",
    SavedView: "api-act-on-view",
    AccessToken: "api-act-on-token",
    BulkOperation: "api-act-on-bulk",
    Incident: "api-act-on-failures",
}
"""The routes of the other actions, by the model of their target."""

TEXT, WHOLE, ID = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "string", "format": "uuid"},
)
"""Schemas (JSON Schema 2020-12) of the values in addresses."""

IN_ADDRESSES = {"process": ID, "operation": ID, "cause": TEXT}
"""The schemas of the parts of addresses; others are whole numbers."""


def parameter(name: str, place: str = "query") -> dict[str, Any]:
    """Return a parameter of an address, as OpenAPI describes it."""
    schema = IN_ADDRESSES.get(name, WHOLE) if place == "path" else TEXT
    return {"name": name, "in": place, "schema": schema, "required": place == "path"}


SELECTING = [
    parameter(name)
    for name in dict.fromkeys(
        ["action", "cause", "of", *Filters.names(), *EventFilters.names().values()]
    )
]
"""The parameters of the address at which an operation on many begins."""

QUERIES = {
    send.name: [{**parameter("type"), "required": True}],
    start_bulk.name: SELECTING,
}


def operations_of(operation: Operation) -> dict[str, dict[str, Any]]:
    """Return the descriptions (OpenAPI) of the POSTs that do an action, by address."""
    address = address_pattern(operation).partition("?")[0]
    found = {address: _post(operation, address, operation.name, 200)}
    if operation.name in CREATING:
        route, status = CREATING[operation.name]
        address = _pattern(route)
        found[address] = _post(operation, address, f"create_{operation.name}", status)
    return found


def _post(operation: Operation, address: str, name: str, status: int) -> dict[str, Any]:
    parts = re.findall(r"\{(\w+)\}", address)
    answer = "SentEvent" if operation is send else "DoneAction"
    ref = {"$ref": f"#/components/schemas/{answer}"}
    schema = {"schema": form_schema(operation)}
    forms = ("application/json", "application/x-www-form-urlencoded")
    return {
        "operationId": name,
        "tags": [ACTING],
        "summary": str(operation.label),
        "description": f"{operation.text}\n\nPermission: `{operation.permission}`.",
        "parameters": [
            *(parameter(part, "path") for part in parts),
            *QUERIES.get(operation.name, []),
            parameter("Idempotency-Key", "header"),
        ],
        "requestBody": {"content": dict.fromkeys(forms, schema), "required": True},
        "responses": {
            str(status): {
                "description": str(operation.done),
                "content": {"application/json": {"schema": ref}},
            }
        },
        "security": [{"Token": []}],
    }


def form_schema(operation: Operation) -> dict[str, Any]:
    """Return the schema of an action's form."""
    form = FORMS.get(operation.name, ActionForm)
    fields: dict[str, Any] = {
        name: form.base_fields[name]
        for name in ("key", "revision", "reason", *OF_FORM.get(operation.name, ()))
        if name in form.base_fields
    }
    fields |= {one.name: FIELDS[one.form]() for one in operation.given}
    needed = [
        name
        for name, field in fields.items()
        if field.required and field.initial is None and name not in ("key", "reason")
    ]
    needed += ["reason"] if operation.requires_reason else []
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema_of_field(field) for name, field in fields.items()},
        "required": needed,
        "additionalProperties": False,
    }
    if operation is send:
        schema["patternProperties"] = {"^field-": {}}
    return schema


def _schema_of_field(field: Any) -> dict[str, Any]:
    match field:
        case JsonField():
            return {}
        case forms.UUIDField():
            return ID
        case forms.BooleanField():
            return {"type": "boolean"}
        case forms.FloatField():
            return {"type": "number"}
        case forms.IntegerField():
            limits = {"minimum": field.min_value, "maximum": field.max_value}
            return WHOLE | {name: at for name, at in limits.items() if at is not None}
    longest = getattr(field, "max_length", None)
    return TEXT | ({"maxLength": longest} if longest else {})
