"""Definitions and processes, with their visits, checkpoints, events and commands."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from monitoring.admin.actions import ProcessActionAdmin
from monitoring.admin.filters import (
    CheckpointStatusFilter,
    DefinitionFilter,
    EscalatedFilter,
)
from monitoring.admin.lists import ProcessRowAdmin, ReadOnlyAdmin, join_definitions
from monitoring.base.graphs import labels_of
from monitoring.lists.events.events import events_with_id
from orchestrator.definition.graph import Graph
from orchestrator.models import (
    Checkpoint,
    Definition,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.models.process_instance import NEWEST_FIRST


@admin.register(ProcessInstance)
class ProcessInstanceAdmin(ProcessActionAdmin):
    list_display = [
        "correlation_key",
        "id",
        "name",
        "status",
        "current_step",
        "open_steps",
        "parent_id",
        "owner",
        "revision",
        "changed_at",
    ]
    list_filter = [DefinitionFilter, "status", EscalatedFilter]
    ordering = [*NEWEST_FIRST]
    process_field = "pk"

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().listed(request).select_related("owner", "definition")
        return rows.defer("definition__graph")

    @admin.display(description=gettext_lazy("current step"))
    def current_step(self, row: ProcessInstance) -> str:
        return labels_of(row.definition).get(row.step, row.step)


@admin.register(InboxEvent)
class InboxEventAdmin(ProcessActionAdmin):
    list_display = [
        "type",
        "event_id",
        "source",
        "verdict",
        "process_id",
        "attempt",
        "received_at",
    ]
    list_filter = ["verdict"]
    process_field = "process"
    search_help_text = gettext_lazy(
        "The id that its sender gave it, a process id or the beginning of a key."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find events by their own ids first, with the row of that number; else by process."""
        text = search_term.replace("\0", "").strip()
        if text and (named := events_with_id(text)):
            numbers = [int(text[:18])] if text.isdecimal() else []
            return queryset.filter(pk__in=[*named, *numbers]), False
        return super().get_search_results(request, queryset, search_term)


@admin.register(Definition)
class DefinitionAdmin(ReadOnlyAdmin):
    list_display = ["name", "version", "kind", "fingerprint", "created_at"]
    list_filter = ["kind"]
    search_fields = ["name", "=fingerprint"]


@admin.register(StepRun)
class StepRunAdmin(ProcessRowAdmin):
    list_display = [
        "step",
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

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        return join_definitions(super().listed(request))

    @admin.display(description=gettext_lazy("step"))
    def step(self, row: StepRun) -> str:
        return labels_of(row.instance.definition).get(row.node, row.node)


@admin.register(Checkpoint)
class CheckpointAdmin(ProcessRowAdmin):
    list_display = ["instance_id", "revision", "moved_by", "status", "at"]
    list_filter = [CheckpointStatusFilter]
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
        """Return the source and the target of each transition, with the labels of the diagram."""
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
class IssuedCommandAdmin(ProcessRowAdmin):
    list_display = [
        "type",
        "instance_id",
        "revision",
        "delivery",
        "status",
        "attempt",
        "issued_at",
    ]
    list_filter = ["status", "delivery"]
    ordering = ["-instance", "-revision"]

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the commands of processes; those of reactions have no place in that order, and need the filter."""
        rows = super().listed(request)
        match = request.resolver_match
        others = request.GET.get("delivery__exact") == Delivery.REACTION
        if others or (match is not None and match.kwargs):
            return rows
        return rows.filter(instance__isnull=False)
