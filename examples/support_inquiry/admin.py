from django.contrib import admin

from examples.order_listing.admin import ReadOnlyAdmin
from examples.support_inquiry.models import Ticket


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    """Tickets, newest first."""

    list_display = ["ticket", "customer", "status", "agent", "message", "created_at"]
    list_filter = ["status"]
    search_fields = ["=ticket", "=customer", "=process_id"]
    ordering = ["-created_at"]
    show_full_result_count = False
