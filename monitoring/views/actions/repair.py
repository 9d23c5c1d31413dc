"""The page of a repair: edits are staged on it, and applied by an action like any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from monitoring.base.access import action_for, form_for, process_scope
from monitoring.base.translation import translate
from monitoring.forms.action_forms import ActionAnswer
from monitoring.process.repair import repair_page, restore_secrets
from monitoring.queries.lists import parse_number
from monitoring.queries.processes import process_rows
from monitoring.views.actions import operations
from monitoring.views.page import page
from orchestrator.engine.operations import (
    EditKind,
    discard_draft,
    look_again,
    stage,
    unstage,
)
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import ProcessInstance
from orchestrator.strict_json import parse

LONGEST = 200


@dataclass(frozen=True)
class Attempt:
    """A refused edit, which the form shows again with the reason.

    Args:
        kind, target, text: as the form has them.
        why: the mistake.
        path: of the mistake in the value.
    """

    kind: str
    target: str
    text: str
    why: str
    path: str = ""


@form_for(of=process_scope)
def index(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show the staged edits and their result; a POST applies them."""
    if request.method == "POST":
        return operations.act_unchecked(request, pk, "repair")
    return _page(request, pk)


@action_for(of=process_scope)
def change(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Change the staged edits, and not the process."""
    attempt, answer = change_draft(request, pk, name)
    if attempt is not None:
        return _page(request, pk, attempt, answer.status)
    address = reverse("monitoring:instance-repair", args=[pk])
    step = request.POST.get("step", "")[:LONGEST]
    return redirect(f"{address}?{urlencode({'step': step})}" if step else address)


def change_draft(
    request: HttpRequest, pk: UUID, name: str
) -> tuple[Attempt | None, ActionAnswer]:
    """Change the staged edits, and return the refused edit, if there is one, with the answer.

    Raises:
        Http404: there is no such change or process.
    """
    change = operations.entry_or_404(CHANGES, name)
    instance = get_object_or_404(process_rows(), pk=pk)
    try:
        attempt = change(instance, request)
    except OperationRefused as refused:
        said = translate(refused.told, instance.definition)
        return _attempt(request.POST, said), ActionAnswer.refused(refused, said)
    if attempt is None:
        return None, ActionAnswer("")
    place = attempt.path or "value"
    errors = {place: [attempt.why]}
    return attempt, ActionAnswer(attempt.why, 400, code="invalid", errors=errors)


def _stage(instance: ProcessInstance, request: HttpRequest) -> Attempt | None:
    given = request.POST
    edit: dict[str, Any] = {"edit": given.get("edit", "")}
    if given.get("target"):
        edit["target"] = given["target"]
    if "value" in given:
        try:
            edit["value"] = parse(given["value"].encode())
        except (InvalidMessage, UnicodeEncodeError) as bad:
            return _attempt(given, str(bad))
        wrong = restore_secrets(instance, edit, request.user)
        if wrong:
            return _attempt(given, wrong)
    mistake = stage(instance, request.user, edit)
    if mistake is None:
        return None
    return _attempt(given, translate(mistake.why, instance.definition), mistake.path)


def _attempt(given: QueryDict, why: str, path: str = "") -> Attempt:
    kind, target = (given.get(name, "")[:LONGEST] for name in ("edit", "target"))
    return Attempt(kind, target, given.get("value", ""), why, path)


def _undo(instance: ProcessInstance, request: HttpRequest) -> None:
    place = parse_number(request.POST.get("place", "")[:3])
    if place is not None:
        unstage(instance, request.user, place, request.POST.get("changed_at", ""))


def _discard(instance: ProcessInstance, request: HttpRequest) -> None:
    discard_draft(instance, request.user)


def _look_again(instance: ProcessInstance, request: HttpRequest) -> None:
    seen = parse_number(request.POST.get("revision", ""), 9)
    look_again(instance, request.user, seen)


CHANGES: dict[str, Callable[[ProcessInstance, HttpRequest], Attempt | None]] = {
    "stage": _stage,
    "undo": _undo,
    "discard": _discard,
    "look-again": _look_again,
}


def _page(
    request: HttpRequest, pk: UUID, attempt: Attempt | None = None, status: int = 200
) -> HttpResponse:
    given = request.POST if attempt is not None else request.GET
    step = given.get("step", "")[:LONGEST].replace("\0", "")
    item = given.get("item", "")[:9]
    shown = repair_page(pk, request.user, step, parse_number(item))
    return page(
        request,
        "repair",
        status=status,
        page=shown,
        instance=shown.instance,
        drawing=shown.drawing,
        is_workflow=shown.instance.definition.is_workflow,
        attempt=attempt,
        item=item,
        kinds=EditKind,
    )
