"""The processes of an object on its page in the application's own admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from monitoring.lists.processes.of_object import render_processes

FIELD = "business_processes"

REQUEST = "_procession_request"
"""The attribute of a shown object that has the request. Django tells a read-only field the object alone."""


class ProcessesMixin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Shows the processes of an object in the read-only field `business_processes`, for users who may see them.

    Write it before `ModelAdmin`. The field stands last, or where `fields` or `fieldsets` name it.
    """

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_readonly_fields(request, obj), FIELD]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        if FIELD in flatten_fieldsets(found):
            return found
        return [*found, (None, {"fields": [FIELD]})]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            setattr(found, REQUEST, request)
        return found

    @admin.display(description=gettext_lazy("processes"))
    def business_processes(self, obj: Any) -> str:
        """Return the list of the object's processes; Django's sign for nothing where there is nothing to see."""
        shown = render_processes(obj, getattr(obj, REQUEST, None))
        return shown or self.get_empty_value_display()
