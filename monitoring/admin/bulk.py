"""Bulk operations, their items, and marks on failures."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from monitoring.admin.filters import ActionFilter
from monitoring.admin.lists import ReadOnlyAdmin
from monitoring.base.requests import parse_uuid
from orchestrator.models import BulkItem, BulkOperation, FailureMark


@admin.register(BulkOperation)
class BulkOperationAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "action",
        "actor_name",
        "status",
        "total",
        "done",
        "failed",
        "skipped",
        "refused",
        "reason",
        "created_at",
        "finished_at",
    ]
    list_filter = [ActionFilter, "status"]
    ordering = ["-id"]


@admin.register(BulkItem)
class BulkItemAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "operation_id",
        "process_id",
        "event_id",
        "verdict",
        "shown_text",
        "tried_at",
        "at",
    ]
    list_filter = ["verdict"]
    ordering = ["-id"]
    search_fields = ["operation"]
    search_help_text = gettext_lazy("The id of an operation.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the items of an operation by its id."""
        text = search_term.strip()
        if not text:
            return queryset, False
        key = parse_uuid(text)
        return queryset.filter(operation=key) if key else queryset.none(), False


@admin.register(FailureMark)
class FailureMarkAdmin(ReadOnlyAdmin):
    list_display = ["fingerprint", "handled_by", "handled_at", "until", "note", "owner"]
    ordering = ["-changed_at"]
