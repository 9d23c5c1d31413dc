"""The secrets of a process: a form that asks for a reason, and an answer that shows them once."""

from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from monitoring.base.access import DATA, form_for, process_scope
from monitoring.base.masking import names_of
from monitoring.forms.action_forms import ActionForm
from monitoring.process.secret_values import SecretHolder, secrets_of_process
from monitoring.queries.processes import process_rows
from monitoring.views.actions.operations import answer_of
from monitoring.views.page import page
from orchestrator.engine.operations import reveal
from orchestrator.models import ProcessInstance


@form_for(DATA, of=process_scope)
def index(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ask for a reason; the answer to a post shows the secrets."""
    instance = get_object_or_404(process_rows(data=False), pk=pk)
    if request.method != "POST":
        return _page(request, instance)
    form = ActionForm(reveal, request.POST)
    answer = answer_of(form, lambda: reveal(pk, request=form.asked(request)))
    if answer.done:
        return _page(request, instance, secrets_of_process(pk))
    return _page(request, instance, refusal=str(answer.text), status=answer.status)


def _page(
    request: HttpRequest,
    instance: ProcessInstance,
    holders: list[SecretHolder] | None = None,
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
    # An answer with secrets is for one person once: caches and the history must not keep it.
    answer["Cache-Control"] = "no-store, private"
    # Not "no-referrer": a browser then sends the form without its origin, and it is refused.
    answer["Referrer-Policy"] = "same-origin"
    return answer
