"""One action on several processes at once: those that a page showed, as it showed them."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid5

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from monitoring.actions import MOST_REVISION, ActionAnswer, ActionForm, ProcessAnswer
from monitoring.spoken import spoken
from orchestrator.engine.operations import ActionRequest, Operation
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance

AT_ONCE = 50
"""Processes that one press acts on: more would take longer than a page waits for its answer."""

ONE = 60
"""Characters of a process id and its revision."""


class ManyForm(ActionForm):
    """The same for several processes: their ids, each with the revision that the page showed."""

    chosen = forms.CharField(max_length=AT_ONCE * ONE, widget=forms.HiddenInput)

    def clean_chosen(self) -> dict[UUID, int]:
        """The revisions by process.

        Raises:
            ValidationError: it names none, too many, or is not what a page sends.
        """
        try:
            found = dict(_parsed(self.cleaned_data["chosen"]))
        except ValueError:
            found = {}
        if not 0 < len(found) <= AT_ONCE:
            raise forms.ValidationError(
                _("Choose at most %(number)s processes."), params={"number": AT_ONCE}
            )
        return found


def carry_out_each(
    request: HttpRequest, operation: Any, form: ManyForm
) -> ActionAnswer:
    """Carries the action out on each, in a transaction of its own; each has a verdict.

    The key of each comes from the form's, so that sending it twice acts once and tells the same.
    """
    if not form.is_valid():
        return ActionAnswer(next(iter(form.errors.values()))[0], 400)
    if forbidden := operation.forbidden(request.user):
        return ActionAnswer(spoken(forbidden), 403)
    chosen = form.cleaned_data["chosen"]
    rows = ProcessInstance.objects.select_related("definition")
    known = rows.defer("data", "definition__graph").in_bulk(chosen)
    verdicts = tuple(
        ProcessAnswer(
            known[pk], _refusal(request, operation, form, known[pk], revision)
        )
        for pk, revision in chosen.items()
        if pk in known
    )
    refused = sum(1 for verdict in verdicts if verdict.refusal)
    done = len(verdicts) - refused
    text = _("%(action)s: %(done)s done, %(refused)s refused.") % {
        "action": operation.label,
        "done": done,
        "refused": refused,
    }
    return ActionAnswer(text, 200 if done else 409, verdicts=verdicts)


def _refusal(
    request: HttpRequest,
    operation: Operation,
    form: ManyForm,
    process: ProcessInstance,
    revision: int,
) -> str:
    """Why it was not done to one; "" if it was."""
    asked = ActionRequest(
        actor=request.user,
        key=uuid5(form.cleaned_data["key"], str(process.pk)),
        reason=form.cleaned_data["reason"],
        expected_revision=revision,
        address=request.META.get("REMOTE_ADDR") or None,
    )
    try:
        action = operation(process.pk, request=asked)  # type: ignore[operator]  # one on processes
    except OperationRefused as refused:
        return spoken(str(refused), process.definition)
    if action.result != OperatorAction.Result.DONE:
        return spoken(action.detail, process.definition)
    return ""


def _parsed(text: str) -> Iterator[tuple[UUID, int]]:
    for one in text.split(","):
        process, _colon, revision = one.partition(":")
        yield UUID(process), max(0, min(int(revision), MOST_REVISION))
