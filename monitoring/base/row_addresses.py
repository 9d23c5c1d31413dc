"""The addresses of the pages that show rows of tables."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import Model
from django.urls import NoReverseMatch, reverse

from orchestrator.models import (
    BulkItem,
    BulkOperation,
    Checkpoint,
    CommandStatus,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)

NO_CAUSE = "none"
"""The cause in the address of failures without a stored cause."""

OF_PROCESSES: dict[type[Model], str] = {
    ProcessInstance: "pk",
    StepRun: "instance_id",
    Checkpoint: "instance_id",
    IssuedCommand: "instance_id",
    OperatorAction: "instance_id",
    Incident: "instance_id",
    InboxEvent: "process_id",
}
"""The models that a process's page shows, each with the field that has the process id."""


def has_place(model: type[Model]) -> bool:
    """Whether rows of a table have a place in the console, and the console has an address in this project."""
    try:
        reverse("monitoring:definitions")
    except NoReverseMatch:
        return False
    return model in OF_PROCESSES or model in (Definition, BulkOperation, BulkItem)


def place_of(row: Any) -> str:
    """Return the address of the page that shows a row; "" where there is none."""
    if not has_place(type(row)):
        return ""
    if isinstance(row, Definition):
        address = reverse("monitoring:definition", args=[row.name])
        return f"{address}?{urlencode({'version': row.version})}"
    if isinstance(row, BulkOperation | BulkItem):
        key = row.pk if isinstance(row, BulkOperation) else row.operation_id
        return reverse("monitoring:bulk-operation", args=[key])
    process = getattr(row, OF_PROCESSES[type(row)])
    if process is not None and _exists(row, process):
        return reverse("monitoring:instance", args=[process]) + _page_part(row)
    return _list_of(row)


def begin_address(action: str, cause: str) -> str:
    """Return the address that begins an action on the processes with failures of one cause."""
    query = urlencode({"action": action, "cause": cause or NO_CAUSE})
    return f"{reverse('monitoring:begin-operation')}?{query}"


def _exists(row: Any, process: Any) -> bool:
    """Whether the process exists; an event may be for a process that never starts."""
    return (
        not isinstance(row, InboxEvent)
        or row.revision is not None
        or (ProcessInstance.objects.filter(pk=process).exists())
    )


def _page_part(row: Any) -> str:
    """Return the part of a process's page that shows a row, as query and fragment."""
    if isinstance(row, StepRun) and row.kind:
        return f"?{urlencode({'step': row.node})}#runs"
    if isinstance(row, Checkpoint | IssuedCommand):
        return f"?before={row.revision + 1}#revision-{row.revision}"
    return ""


def _list_of(row: Any) -> str:
    """Return the address of the list that shows a row without a process; "" where there is none."""
    if isinstance(row, InboxEvent):
        query = urlencode({"tab": row.verdict, "q": row.event_id})
        return f"{reverse('monitoring:events')}?{query}"
    if isinstance(row, IssuedCommand):
        return _failures_of(row)
    if isinstance(row, Incident):
        listed_in = "events" if row.is_about_event else "failures"
        return reverse(f"monitoring:{listed_in}")
    return ""


def _failures_of(row: IssuedCommand) -> str:
    """Return the address of the failures of a failed reaction to an event; "" for other commands."""
    if row.status != CommandStatus.FAILED:
        return ""
    failure = Incident.objects.open().filter(command=row.pk).last()
    cause = failure.fingerprint or NO_CAUSE if failure else ""
    return reverse("monitoring:failure-group", args=[cause]) if cause else ""


def api_address(address: str) -> str:
    """Return the address of the API for an address of the console."""
    console, api = reverse("monitoring:definitions"), reverse("monitoring:api")
    return api + address.removeprefix(console)
