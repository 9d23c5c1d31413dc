"""Notices, and the occurrences behind them."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from monitoring.admin.lists import ReadOnlyAdmin
from monitoring.base.row_addresses import has_place
from orchestrator.models import Notice, Occurrence, ProcessInstance
from orchestrator.notices.item_lines import counts_text, item_line


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The log of deliveries."""

    list_display = [
        "created_at",
        "recipient",
        "told",
        "status",
        "attempt",
        "error",
        "wake_at",
        "settled_at",
    ]
    list_filter = ["status"]
    ordering = ["-id"]
    fields = readonly_fields = (
        "id",
        "recipient",
        "told",
        "said",
        "status",
        "attempt",
        "error",
        "created_at",
        "begun_at",
        "wake_at",
        "settled_at",
    )

    @admin.display(description=gettext_lazy("tells of"))
    def told(self, row: Notice) -> str:
        return counts_text(row.counts)

    @admin.display(description=gettext_lazy("text"))
    def said(self, row: Notice) -> str:
        """Return a line for each item, with a link if the console has an address."""
        linked = has_place(ProcessInstance)
        lines = (
            (linked and self._page(item), item_line(item, row.texts))
            for item in row.items
        )
        form = '<a href="{}">{}</a>' if linked else "{1}"
        return format_html_join(mark_safe("<br>"), form, lines)

    def _page(self, item: dict[str, Any]) -> str:
        if item["process_id"]:
            return reverse("monitoring:instance", args=[item["process_id"]])
        return reverse("monitoring:failures")


@admin.register(Occurrence)
class OccurrenceAdmin(ReadOnlyAdmin):
    list_display = [
        "at",
        "topics",
        "definition",
        "correlation_key",
        "step",
        "queue",
        "shown_text",
    ]
    ordering = ["-id"]
