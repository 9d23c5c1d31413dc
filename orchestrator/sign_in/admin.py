"""The tables of django-allauth in Django's administration, without their secrets."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib.admin import AdminSite, ModelAdmin
from django.http import HttpRequest

from orchestrator.sign_in.accounts import security


class SecondFactorAdmin(ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Shows the second factors, which superusers may delete."""

    list_display = fields = ("user", "type", "created_at", "last_used_at")
    search_fields = ("user__username",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            names = (row.user.get_username(), request.user.get_username())
            security.info("second factor: removed of %a by %a", *names)
        return super().log_deletions(request, queryset)


class ProviderAccountAdmin(ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Tells which subject of which issuer a user is."""

    list_display = fields = ("user", "provider", "uid", "date_joined", "last_login")
    search_fields = ("user__username", "uid")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def register_second_factors(site: AdminSite) -> None:
    """Put these in the place of the tables that django-allauth shows, with secrets and without use here."""
    for model in (Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken):
        if site.is_registered(model):
            site.unregister(model)
    site.register(Authenticator, SecondFactorAdmin)
    site.register(SocialAccount, ProviderAccountAdmin)
