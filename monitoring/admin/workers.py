"""Workers, and queues without any."""

from django.contrib import admin

from monitoring.admin.lists import ReadOnlyAdmin
from orchestrator.models import QueueOutage, Worker


@admin.register(QueueOutage)
class QueueOutageAdmin(ReadOnlyAdmin):
    list_display = ["queue", "since", "seen_at", "told_at"]


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ["id", "host", "pid", "queue", "started_at", "seen_at", "swept_at"]
    list_filter = ["host", "queue"]
    search_fields = ["=id", "host"]
