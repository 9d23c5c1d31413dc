"""Incidents and their groups, operators' actions, and repairs."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from monitoring.admin.filters import ActionFilter
from monitoring.admin.lists import ProcessRowAdmin, ReadOnlyAdmin, join_definitions
from monitoring.base.translation import translate
from orchestrator.models import FailureGroup, Incident, OperatorAction, Repair


@admin.register(Incident)
class IncidentAdmin(ProcessRowAdmin):
    list_display = [
        "shown_text",
        "kind",
        "instance_id",
        "opened_at",
        "resolved_at",
        "shown_resolution",
    ]
    list_filter = ["kind", "resolved_at"]

    @admin.display(description=gettext_lazy("resolved by"))
    def shown_resolution(self, row: Incident) -> str:
        """Return the resolution, for lists."""
        return translate(row.resolved_by)

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        return join_definitions(super().listed(request))


@admin.register(OperatorAction)
class OperatorActionAdmin(ProcessRowAdmin):
    list_display = [
        "action",
        "actor_name",
        "instance_id",
        "event_id",
        "result",
        "reason",
        "at",
    ]
    list_filter = [ActionFilter, "result"]
    ordering = ["-at"]


@admin.register(Repair)
class RepairAdmin(ProcessRowAdmin):
    list_display = [
        "author_name",
        "instance_id",
        "revision",
        "reason",
        "proposed_at",
        "changed_at",
    ]


@admin.register(FailureGroup)
class FailureGroupAdmin(ReadOnlyAdmin):
    list_display = [
        "shown_text",
        "definition",
        "step",
        "error",
        "place",
        "number",
        "first_at",
        "last_at",
    ]
    list_filter = ["kind"]
    ordering = ["-last_at"]
