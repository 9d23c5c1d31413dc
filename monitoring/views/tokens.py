"""A person's own access tokens. Only the answer to the request that makes a token has its value."""

from typing import Any
from uuid import uuid4

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from monitoring.access import action_for, form_for
from monitoring.actions import ActionAnswer, ActionForm
from monitoring.buttons import Button, Dialog
from monitoring.open_pages import by_script
from monitoring.queries.tokens import tokens_page
from monitoring.views.operations import answer_of, plain, shown
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
    """The tokens of the reader; a post makes one, and shows its value once."""
    if request.method != "POST":
        return page(request, "tokens", **_context(request))
    form = ActionForm(make_token, request.POST)
    answer, value = _made(request, form)
    if not answer.done:
        asked = {"form": form, "refusal": answer.text}
        context = _context(request) | asked
        return page(request, "tokens", status=answer.status, **context)
    name = form.cleaned_data["name"]
    return page(request, "tokens", **_context(request), made=name, value=value)


def _made(request: HttpRequest, form: ActionForm) -> tuple[ActionAnswer, str]:
    """Make the token of a form; return the answer, and the token's value or ""."""
    values: list[str] = []

    def made() -> None:
        token, value = make_token(*form.given(), request=form.asked(request))
        if token is None:
            raise OperationRefused(AGAIN)
        values.append(value)

    answer = answer_of(form, made)
    return answer, "".join(values)


@action_for()
def act(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Revoke a token."""
    answer = pressed(request, name, pk)
    if by_script(request):
        return shown(request, "tokens", answer, _context(request))
    return plain(request, answer, redirect("monitoring:tokens"))


def pressed(request: HttpRequest, name: str, pk: int) -> ActionAnswer:
    """Carry out an action on a token, and return the answer.

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
    """Return the button that revokes a token; it needs no permission."""
    return Button(
        revoke_token,
        f"revoke-{row.pk}",
        reverse("monitoring:act-on-token", args=[row.pk, revoke_token.name]),
        "",
        row.name,
    )
