"""Every table for looking at, none for changing; what operators may do goes through the engine, with a reason."""

from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.actions import MOST_REVISION
from orchestrator.definition.graph import Graph
from orchestrator.engine.operations import OPERATIONS, ActionRequest, Operation
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
    Worker,
)

MOST = 100
"""Rows that one action takes on."""


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Shows rows; the engine alone writes them."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


def with_reason(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    operation: Operation,
) -> HttpResponse | None:
    """Asks for the reason on a page of its own, then asks the engine for each chosen row."""
    rows = list(chosen[: MOST + 1])
    if len(rows) > MOST:
        messages.error(request, _("Choose at most %d rows.") % MOST)
        return None
    reason = request.POST.get("reason", "").strip()
    if "key" in request.POST and (reason or not operation.asks_reason):
        return _carry_out(request, rows, operation, reason)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": operation.label,
        "opts": model_admin.opts,
        "rows": rows,
        "action": request.POST.get("action", ""),
        "key": request.POST.get("key") or uuid4(),
        "missing": "key" in request.POST,
    }
    return TemplateResponse(request, "monitoring/admin/reason.html", context)


def _carry_out(
    request: HttpRequest, rows: list[Any], operation: Any, reason: str
) -> HttpResponse | None:
    """One operation for each row; its key comes from the page's, so that sending the page twice acts once."""
    for row in rows:
        seen = request.POST.get(f"revision-{row.pk}", "")
        try:
            asked = ActionRequest(
                actor=request.user,
                key=uuid5(UUID(request.POST["key"]), str(row.pk)),
                reason=reason,
                expected_revision=min(int(seen), MOST_REVISION)
                if seen.isdecimal()
                else None,
                address=request.META.get("REMOTE_ADDR") or None,
            )
            operation(row.pk, request=asked)
        except (OperationRefused, ValueError) as refused:
            messages.error(request, f"{row}: {refused}")
        else:
            messages.success(request, _("%s: done.") % row)
    return None


class OperatedAdmin(ReadOnlyAdmin):
    """Offers for chosen rows the operators' actions that can be done to many."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_actions(request)
        for operation in OPERATIONS.values():
            mine = operation.on_many and operation.model is self.model
            if mine and not operation.forbidden(request.user):
                act = partial(_act, operation=operation)
                found[operation.name] = (act, operation.name, operation.label)
        return found


def _act(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    rows: QuerySet[Any],
    *,
    operation: Operation,
) -> HttpResponse | None:
    return with_reason(model_admin, request, rows, operation)


@admin.register(ProcessInstance)
class ProcessInstanceAdmin(OperatedAdmin):
    list_display = [
        "correlation_key",
        "id",
        "name",
        "status",
        "step",
        "open_steps",
        "parent_id",
        "owner",
        "revision",
        "changed_at",
    ]
    list_filter = ["name", "status", "escalation_level"]
    search_fields = ["=id", "correlation_key__startswith"]
    ordering = ["-id"]


@admin.register(InboxEvent)
class InboxEventAdmin(OperatedAdmin):
    list_display = [
        "type",
        "event_id",
        "source",
        "verdict",
        "process_id",
        "attempt",
        "received_at",
    ]
    list_filter = ["verdict", "type", "source"]
    search_fields = ["=event_id", "=correlation_key", "=process__id"]
    ordering = ["-id"]


@admin.register(Definition)
class DefinitionAdmin(ReadOnlyAdmin):
    list_display = ["name", "version", "kind", "fingerprint", "created_at"]
    list_filter = ["kind"]
    search_fields = ["name", "=fingerprint"]


@admin.register(StepRun)
class StepRunAdmin(ReadOnlyAdmin):
    list_display = [
        "node",
        "kind",
        "visit",
        "item",
        "round",
        "instance_id",
        "status",
        "attempt",
        "wake_at",
        "started_at",
        "finished_at",
    ]
    list_filter = ["status", "kind"]
    search_fields = ["=instance__id", "=instance__correlation_key", "=node"]
    ordering = ["-id"]


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    list_display = ["instance_id", "revision", "moved_by", "status", "at"]
    list_filter = ["status"]
    search_fields = ["=instance__id", "=instance__correlation_key"]
    ordering = ["-id"]
    fields = readonly_fields = (
        "instance",
        "revision",
        "moved_by",
        "transitions",
        "steps",
        "status",
        "data",
        "checksum",
        "at",
    )

    @admin.display(description=gettext_lazy("cause"))
    def moved_by(self, row: Checkpoint) -> str:
        return row.said

    @admin.display(description=gettext_lazy("transition taken"))
    def transitions(self, row: Checkpoint) -> str:
        """From where to where, as the diagram of its definition says it."""
        graph = Graph.from_json(row.instance.definition.graph)
        labels = {node.id: node.label for node in graph.nodes}
        taken = set(row.edge.split(","))
        moves = [
            f"{labels[edge.source]} → {labels[edge.target]}"
            for edge in graph.edges
            if edge.id in taken
        ]
        return ", ".join(moves) or str(self.get_empty_value_display())


@admin.register(IssuedCommand)
class IssuedCommandAdmin(ReadOnlyAdmin):
    list_display = [
        "type",
        "instance_id",
        "revision",
        "delivery",
        "status",
        "attempt",
        "issued_at",
    ]
    list_filter = ["status", "delivery", "type"]
    search_fields = ["=id", "=instance__id", "=instance__correlation_key"]
    ordering = ["-issued_at"]


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    list_display = [
        "message",
        "kind",
        "instance_id",
        "opened_at",
        "resolved_at",
        "resolution",
    ]
    list_filter = ["kind", "resolved_at"]
    search_fields = ["message", "=instance__id", "=instance__correlation_key"]
    ordering = ["-id"]


@admin.register(OperatorAction)
class OperatorActionAdmin(ReadOnlyAdmin):
    list_display = [
        "action",
        "actor_name",
        "instance_id",
        "event_id",
        "result",
        "reason",
        "at",
    ]
    list_filter = ["action", "result"]
    search_fields = ["actor_name", "reason", "=instance__id", "=key"]
    ordering = ["-at"]


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ["id", "host", "pid", "queue", "started_at", "seen_at", "swept_at"]
    list_filter = ["host", "queue"]
    search_fields = ["=id", "host"]
