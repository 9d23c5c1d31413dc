"""Permissions by definition. Django's own permissions for this table say who may grant them.

A grant counts from the next request on. The admin's log keeps each change with its user.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from monitoring.admin.answers import ConsoleAdmin
from monitoring.base.access import BY_DEFINITION
from orchestrator import registry
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import DefinitionGrant


class PermissionField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    """The permissions that can hold for one definition, as the actions call them."""

    def __init__(self) -> None:
        super().__init__(grantable_permissions(), label=_("Permission"))

    def label_from_instance(self, permission: Any) -> str:
        return f"{_labels().get(permission.codename, permission.name)} ({permission.codename})"


class GrantForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """The form of a grant: group, definition and permission."""

    definition = forms.ChoiceField(label=_("Definition"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = {one.name for one in registry.newest_definitions()}
        # A definition that the running code lacks stays a choice of its own grant.
        names = sorted(filter(None, {*known, self.instance.definition}))
        choices = [("", "---------"), *((name, name) for name in names)]
        self.fields["definition"].choices = choices  # type: ignore[attr-defined]  # of this field
        self.fields["permission"] = PermissionField()

    class Meta:
        model = DefinitionGrant
        fields = ("group", "definition", "permission")


@admin.register(DefinitionGrant)
class DefinitionGrantAdmin(ConsoleAdmin):
    """The only table that users change in the admin; the engine reads it."""

    form = GrantForm
    list_display = ("group", "definition", "codename")
    list_display_links = list_display
    list_filter = ("group", "definition")
    ordering = ("group__name", "definition", "permission__codename")
    search_fields = ("group__name", "definition", "permission__codename")

    @admin.display(description=_("Permission"), ordering="permission__codename")
    def codename(self, grant: DefinitionGrant) -> str:
        return str(grant.permission.codename)

    def get_queryset(self, request: HttpRequest) -> QuerySet[DefinitionGrant]:
        rows = super().get_queryset(request)
        return rows.select_related("group", "permission")


def grantable_permissions() -> QuerySet[Permission]:
    """Return the permissions that a grant may have: to see processes, and for actions on one definition."""
    wanted = Q(pk__in=[])
    for permission in BY_DEFINITION:
        app, codename = permission.split(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    for operation in OPERATIONS.values():
        if operation.by_definition:
            app = operation.model._meta.app_label
            wanted |= Q(content_type__app_label=app, codename=operation.codename)
    return Permission.objects.filter(wanted).order_by("codename")


def _labels() -> dict[str, Any]:
    """Return the label of each permission by its codename; some actions share a permission."""
    by_name = sorted(OPERATIONS.values(), key=attrgetter("name"), reverse=True)
    return {one.codename: one.may for one in by_name if one.by_definition}
