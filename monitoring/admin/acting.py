"""The operators' actions on chosen rows: a reason is asked for on a page of its own, then the engine for each row."""

from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from monitoring.actions import MOST_REVISION, address_of
from monitoring.admin.lists import MOST, OfProcessesAdmin, ReadOnlyAdmin
from monitoring.queries.texts import translated
from orchestrator.engine.operations import OPERATIONS, ActionRequest, Operation
from orchestrator.exceptions import OperationRefused
from orchestrator.text import text_from


def with_reason(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    operation: Operation,
) -> HttpResponse | None:
    """Asks for the reason on a page of its own, then asks the engine for each chosen row."""
    rows = list(chosen[: MOST + 1])
    if len(rows) > MOST:
        messages.error(request, _("Choose at most %d rows.") % MOST)
        return None
    reason = request.POST.get("reason", "").strip()
    if "key" in request.POST and (reason or not operation.asks_reason):
        return _carry_out(request, rows, operation, reason)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": operation.label,
        "opts": model_admin.opts,
        "rows": rows,
        "action": request.POST.get("action", ""),
        "key": request.POST.get("key") or uuid4(),
        "missing": "key" in request.POST,
    }
    return TemplateResponse(request, "monitoring/admin/reason.html", context)


def _carry_out(
    request: HttpRequest, rows: list[Any], operation: Any, reason: str
) -> HttpResponse | None:
    """One operation for each row; its key comes from the page's, so that sending the page twice acts once."""
    for row in rows:
        seen = request.POST.get(f"revision-{row.pk}", "")
        revision = min(int(seen), MOST_REVISION) if seen.isdecimal() else None
        try:
            asked = ActionRequest(
                actor=request.user,
                key=uuid5(UUID(request.POST["key"]), str(row.pk)),
                reason=reason,
                expected_revision=revision,
                address=address_of(request),
            )
            operation(row.pk, request=asked)
        except (OperationRefused, ValueError) as refused:
            messages.error(request, f"{row}: {translated(text_from(refused))}")
        else:
            messages.success(request, _("%s: done.") % row)
    return None


class ActingAdmin(ReadOnlyAdmin):
    """Offers for chosen rows the operators' actions that can be done to many."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_actions(request)
        for operation in OPERATIONS.values():
            mine = operation.on_many and operation.model is self.model
            if mine and not operation.forbidden_everywhere(request.user):
                act = partial(with_reason, operation=operation)
                found[operation.name] = (act, operation.name, operation.label)
        return found


class OperatedAdmin(ActingAdmin, OfProcessesAdmin):
    """The same for a table whose rows are found by their process."""
