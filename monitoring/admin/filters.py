"""Filters whose values are known without a query of the table."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Definition, Status


class KnownValuesFilter(admin.SimpleListFilter):
    """A filter whose values are known without a query of the table."""

    field = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.field: value}) if value else queryset


class DefinitionFilter(KnownValuesFilter):
    title = gettext_lazy("definition")
    parameter_name = field = "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = Definition.objects.order_by("name").values_list("name", flat=True)
        return [(name, name) for name in names.distinct()]


class EscalatedFilter(admin.SimpleListFilter):
    title = gettext_lazy("escalated")
    parameter_name = "escalation_level"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", gettext_lazy("Yes"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(escalation_level__gt=0) if self.value() else queryset


class CheckpointStatusFilter(KnownValuesFilter):
    title = gettext_lazy("status")
    parameter_name = field = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(Status.choices)


class ActionFilter(KnownValuesFilter):
    title = gettext_lazy("action")
    parameter_name = field = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, operation.label) for name, operation in OPERATIONS.items()]
