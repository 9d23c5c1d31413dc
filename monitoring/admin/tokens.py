"""Access tokens of all people: who has which, and revoking them. No value of one is anywhere."""

from django.contrib import admin

from monitoring.admin.acting import ActingAdmin
from orchestrator.models import AccessToken


@admin.register(AccessToken)
class AccessTokenAdmin(ActingAdmin):
    list_display = [
        "name",
        "owner",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
        "revoked_by",
    ]
    list_select_related = ["owner"]
    list_filter = ["revoked_at"]
    ordering = ["-id"]
    exclude = ("digest",)
