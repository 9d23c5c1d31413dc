"""Answers to programs: JSON, and refusals with a code that is the same in every language."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from http.client import responses
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder

from monitoring.base.row_addresses import api_address
from monitoring.forms.action_forms import ActionAnswer

STATUS = {400: 422}
"""The status for programs, where it is not the one of the page: an invalid form is 422."""

PROBLEM = "application/problem+json"
"""The media type of a problem document (RFC 9457)."""


class Encoder(NinjaJSONEncoder):
    """Writes times to the microsecond, with their zone."""

    def default(self, value: Any) -> Any:
        return (
            value.isoformat() if isinstance(value, datetime) else super().default(value)
        )


class Renderer(JSONRenderer):
    """Writes JSON with its characters as they are."""

    encoder_class = Encoder
    json_dumps_params = {"ensure_ascii": False}


class NotAnswered(Exception):
    """The refusal of a request.

    Args:
        status: the HTTP status.
        code: the kind of refusal, for programs.
        said: the reason, for people.
        headers: of the answer.
        more: further members of the answer, such as `errors`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        said: Any,
        /,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(said)
        self.status, self.code, self.said = status, code, said
        self.headers, self.more = headers or {}, more

    @classmethod
    def invalid(cls, errors: Mapping[str, list[str]]) -> NotAnswered:
        """Return the refusal of a request with fields or parameters that are wrong."""
        first = next(iter(errors.values()))[0]
        return cls(422, "invalid", first, errors=errors)


def refusal_response(request: HttpRequest, refusal: NotAnswered) -> HttpResponse:
    """Return the answer to a refused request: a problem document where `Accept` names that type."""
    said = {"error": refusal.code, "said": str(refusal.said)}
    body, media = {"done": False, **said, **refusal.more}, Renderer.media_type
    if _asks_for_problem(request):
        media = PROBLEM
        body = {
            "type": "about:blank",
            "title": responses[refusal.status],
            "status": refusal.status,
            "detail": str(refusal.said),
            "instance": request.path,
            "error": refusal.code,
            **refusal.more,
        }
    content = Renderer().render(request, body, response_status=refusal.status)
    headers = {"Cache-Control": "no-store", **refusal.headers}
    response = HttpResponse(content, media, refusal.status, headers=headers)
    # The security log has the refusals of tokens; Django would log a warning for each refusal.
    response._has_been_logged = True  # type: ignore[attr-defined]  # as its own handler does
    return response


def _asks_for_problem(request: HttpRequest) -> bool:
    """Whether `Accept` names the type of problem documents, and not only any type."""
    try:
        accepted = request.accepted_types
    except ValueError:  # it cannot be read
        return False
    return any(f"{one.main_type}/{one.sub_type}" == PROBLEM for one in accepted)


def report(answer: ActionAnswer, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an action.

    Args:
        answer: of the form.
        about: the target as it is now.

    Raises:
        NotAnswered: the action was refused.
    """
    about = {**answer.about, **about}
    wrong: dict[str, Any] = {"errors": dict(answer.errors)} if answer.errors else {}
    if answer.done:
        place = {"address": api_address(answer.leads_to)} if answer.leads_to else {}
        return {"done": True, "said": str(answer.text), **place, **about}
    wrong |= {"code": answer.reason} if answer.reason else {}
    status = STATUS.get(answer.status, answer.status)
    raise NotAnswered(status, answer.code, answer.text, **wrong, **about)
