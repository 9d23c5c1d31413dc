"""What programs are answered: always JSON, refusals with a word that does not change with the language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import JsonResponse

from monitoring.actions import ActionAnswer
from monitoring.places import below_api

STATUS = {400: 422}
"""What a form that is not filled in well is for programs."""


class NotAnswered(Exception):
    """A request that is refused before anything is looked at.

    Args:
        status: the HTTP status.
        code: what it is, for programs.
        said: the same, for people.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        said: Any,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(said)
        self.status, self.code, self.said = status, code, said
        self.headers = headers or {}

    def response(self) -> JsonResponse:
        return refused(self.status, self.code, self.said, self.headers)


def answered(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """An answer that nobody keeps."""
    response = JsonResponse(
        dict(body), status=status, json_dumps_params={"ensure_ascii": False}
    )
    response.headers["Cache-Control"] = "no-store"
    for name, value in (headers or {}).items():
        response.headers[name] = value
    # The security log has what it needs; Django would log a warning for each.
    response._has_been_logged = True  # type: ignore[attr-defined]  # as its own handler does
    return response


def refused(
    status: int, code: str, said: Any, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """A refusal."""
    return answered({"done": False, "error": code, "said": str(said)}, status, headers)


def of_action(answer: ActionAnswer, about: Mapping[str, Any]) -> JsonResponse:
    """What became of an action.

    Args:
        answer: that.
        about: what it was done to, as it is now.
    """
    if answer.done:
        place = {"address": below_api(answer.leads_to)} if answer.leads_to else {}
        return answered({"done": True, "said": str(answer.text), **place, **about})
    wrong = {"errors": dict(answer.errors)} if answer.errors else {}
    body = {"done": False, "error": answer.code, "said": str(answer.text), **wrong}
    return answered({**body, **about}, STATUS.get(answer.status, answer.status))
