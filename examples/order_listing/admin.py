from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from examples.order_listing.models import HistoryEntry, Order


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """For looking: the command handlers alone write these tables."""

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


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    """Orders, newest first."""

    list_display = ["order_id", "description", "destination", "notice", "created_at"]
    list_filter = ["destination"]
    search_fields = ["=order_id", "=external_id", "=process_id"]
    ordering = ["-created_at"]
    show_full_result_count = False


@admin.register(HistoryEntry)
class HistoryEntryAdmin(ReadOnlyAdmin):
    """Histories of orders, newest entry first."""

    list_display = ["at", "order_id", "text"]
    search_fields = ["=order_id"]
    ordering = ["-at"]
    show_full_result_count = False
