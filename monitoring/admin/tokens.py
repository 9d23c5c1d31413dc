"""The access tokens of all users, to see and to revoke. The values of tokens are not stored."""

from django.contrib import admin

from monitoring.admin.actions import ActionAdmin
from orchestrator.models import AccessToken


@admin.register(AccessToken)
class AccessTokenAdmin(ActionAdmin):
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
