"""The access tokens of a user: list, make, revoke. Only the answer to making a token has its value."""

from typing import Any
from uuid import uuid4

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from monitoring.base.access import action_for, form_for
from monitoring.base.requests import is_from_script
from monitoring.forms.action_forms import ActionAnswer, ActionForm
from monitoring.forms.buttons import Button, Dialog
from monitoring.lists.tokens import tokens_page
from monitoring.views.actions.operations import answer_of, finish, live_answer
from monitoring.views.page import page
from orchestrator.access_tokens import LONGEST_LIFE, MOST
from orchestrator.engine.operations import make_token, revoke_token
from orchestrator.exceptions import OperationRefused
from orchestrator.text import Text

AGAIN = Text(
    "It was made at an earlier press, and is not shown again: revoke it, and make another"
)


@form_for()
def index(request: HttpRequest) -> HttpResponse:
    """List the user's tokens; a POST makes one, and shows its value this once."""
    if request.method != "POST":
        return page(request, "tokens", **_context(request))
    form = ActionForm(make_token, request.POST)
    answer = _make_token(request, form)
    if not answer.done:
        context = _context(request) | {"form": form, "refusal": answer.text}
        return page(request, "tokens", status=answer.status, **context)
    made = {"made": form.cleaned_data["name"], "value": answer.about["value"]}
    return page(request, "tokens", **_context(request), **made)


def _make_token(request: HttpRequest, form: ActionForm) -> ActionAnswer:
    """Make a token; the answer's `about` has its value."""

    def made() -> str:
        token, value = make_token(*form.given(), request=form.asked(request))
        if token is None:
            raise OperationRefused(AGAIN)
        return value

    return answer_of(form, made, lambda value: {"about": {"value": value}})


@action_for()
def act(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Revoke a token."""
    answer = perform_on_token(request, name, pk)
    if is_from_script(request):
        return live_answer(request, "tokens", answer, _context(request))
    return finish(request, answer, redirect("monitoring:tokens"))


def perform_on_token(request: HttpRequest, name: str, pk: int) -> ActionAnswer:
    """Carry out an action on a token.

    Raises:
        Http404: there is no such action.
    """
    if name != revoke_token.name or pk >= 2**63:
        raise Http404
    form = ActionForm(revoke_token, request.POST)
    return answer_of(form, lambda: revoke_token(pk, request=form.asked(request)))


def _context(request: HttpRequest) -> dict[str, Any]:
    rows = [
        (row, state, _button(row) if state == "living" else None)
        for row, state in tokens_page(request.user)
    ]
    return {
        "rows": rows,
        "operation": make_token,
        "new_key": uuid4().hex,
        "usual_days": 90,
        "most": MOST,
        "longest": LONGEST_LIFE,
        "why": make_token.forbidden(request.user),
        "dialogs": [Dialog(revoke_token)],
    }


def _button(row: Any) -> Button:
    """Return the button that revokes the user's own token, which needs no permission."""
    return Button(
        revoke_token,
        f"revoke-{row.pk}",
        reverse("monitoring:act-on-token", args=[row.pk, revoke_token.name]),
        "",
        row.name,
    )
