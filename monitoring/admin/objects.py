"""The processes of an object on its page in the application's own admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from monitoring.lists.processes.of_object import (
    render_processes,
    stored_processes_of,
)
from orchestrator.models.process_instance import ProcessInstanceQuerySet

FIELD = "business_processes"

SHOWN = "_procession_shown"
"""The attribute of an object with what its page shows. Django gives a read-only field the object alone."""


class ShownProcesses:
    """The processes of an object as it is stored, and the request for its page; a copy of the object has neither.

    Args:
        rows: the processes; None for an object without any.
        request: the request.
    """

    def __init__(
        self,
        rows: ProcessInstanceQuerySet | None = None,
        request: HttpRequest | None = None,
    ) -> None:
        self.rows, self.request = rows, request

    def __reduce__(self) -> tuple[Any, ...]:
        return ShownProcesses, ()


class ProcessesMixin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Shows the processes of an object in the read-only field `business_processes`, for users who may see them.

    Write it before `ModelAdmin`. The field stands last, or where `fields` or `fieldsets` name it. A method
    `get_readonly_fields` of the application must have what `super()` returns, else there is no field.
    """

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_readonly_fields(request, obj), FIELD]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        missing = FIELD not in self.get_readonly_fields(request, obj)
        if missing or FIELD in flatten_fieldsets(found):
            return found
        return [*found, (None, {"fields": [FIELD]})]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            # A form that is refused has changed the object.
            setattr(found, SHOWN, ShownProcesses(stored_processes_of(found), request))
        return found

    @admin.display(description=gettext_lazy("processes"))
    def business_processes(self, obj: Any) -> str:
        """Return the list of the object's processes; Django's sign for nothing where there is nothing to see."""
        shown: ShownProcesses = getattr(obj, SHOWN, ShownProcesses())
        said = render_processes(shown.rows, shown.request)
        return said or self.get_empty_value_display()
