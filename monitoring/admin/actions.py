"""Operators' actions on chosen rows, after a page that asks for the reason."""

from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from monitoring.admin.lists import MOST, ProcessRowAdmin, ReadOnlyAdmin
from monitoring.base.requests import MOST_REVISION, client_address
from monitoring.base.translation import translate
from orchestrator.engine.operations import OPERATIONS, ActionRequest, Operation
from orchestrator.exceptions import OperationRefused
from orchestrator.text import text_from


def ask_reason(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    operation: Operation,
) -> HttpResponse | None:
    """Ask for the reason on a page of its own, then act on each chosen row."""
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
    """Act on each row. Its key comes from the key of the page, so a page that is sent twice acts once."""
    for row in rows:
        seen = request.POST.get(f"revision-{row.pk}", "")
        revision = min(int(seen), MOST_REVISION) if seen.isdecimal() else None
        try:
            asked = ActionRequest(
                actor=request.user,
                key=uuid5(UUID(request.POST["key"]), str(row.pk)),
                reason=reason,
                expected_revision=revision,
                address=client_address(request),
            )
            operation(row.pk, request=asked)
        except (OperationRefused, ValueError) as refused:
            messages.error(request, f"{row}: {translate(text_from(refused))}")
        else:
            messages.success(request, _("%s: done.") % row)
    return None


class ActionAdmin(ReadOnlyAdmin):
    """Offers the operators' bulk actions for chosen rows."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_actions(request)
        for operation in OPERATIONS.values():
            mine = operation.on_many and operation.model is self.model
            if mine and not operation.forbidden_everywhere(request.user):
                act = partial(ask_reason, operation=operation)
                found[operation.name] = (act, operation.name, operation.label)
        return found


class ProcessActionAdmin(ActionAdmin, ProcessRowAdmin):
    """The same for tables that are searched by process."""
