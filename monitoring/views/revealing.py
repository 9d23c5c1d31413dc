"""The secrets of a process: a page that asks why, and an answer that shows them to whoever has said so alone."""

from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods

from monitoring.access import for_data_viewers_of_process
from monitoring.actions import ActionForm
from monitoring.masking import names_of
from monitoring.queries.instance.revealed import Holder, revealed
from monitoring.queries.processes import processes
from monitoring.queries.texts import translated
from monitoring.views.page import page
from orchestrator.engine.operations import reveal
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import ProcessInstance


@require_http_methods(["GET", "HEAD", "POST"])
@for_data_viewers_of_process
def index(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Asks why; posted to it, shows the secrets in its answer alone."""
    instance = get_object_or_404(processes(data=False), pk=pk)
    if request.method != "POST":
        return _page(request, instance)
    form = ActionForm(reveal, request.POST)
    if not form.is_valid():
        why = str(next(iter(form.errors.values()))[0])
        return _page(request, instance, refusal=why, status=400)
    try:
        reveal(pk, request=form.asked(request))
    except OperationRefused as refused:
        status = 403 if isinstance(refused, PermissionMissing) else 409
        return _page(request, instance, refusal=translated(refused.told), status=status)
    return _page(request, instance, revealed(pk))


def _page(
    request: HttpRequest,
    instance: ProcessInstance,
    holders: list[Holder] | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    answer = page(
        request,
        "revealed",
        status=status,
        instance=instance,
        operation=reveal,
        holders=holders,
        fields=sorted(names_of(instance.definition)),
        refusal=refusal,
        why=reveal.forbidden(request.user, instance.name),
        key=uuid4(),
    )
    # An answer with secrets is of this moment and this person: no cache, no history, no other page has it.
    answer["Cache-Control"] = "no-store, private"
    # Not "no-referrer": a browser then sends the form without its origin, and it is refused.
    answer["Referrer-Policy"] = "same-origin"
    return answer
