"""The body of a program's request: a form, or a JSON object."""

from __future__ import annotations

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _

from monitoring.api.answers import NotAnswered
from monitoring.forms.action_forms import ProgramData
from orchestrator.exceptions import InvalidMessage
from orchestrator.strict_json import Limits, TooLarge, parse

LARGEST = 1_048_576
"""Bytes of a body at most, as in the bundled project."""

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "")
"""Content types of forms; an empty body needs none."""


def read_program_data(request: HttpRequest) -> ProgramData:
    """Return the values in the body.

    Raises:
        NotAnswered: the body is too large, or cannot be read.
    """
    length = request.headers.get("Content-Length") or "0"
    if not length.isdecimal() or int(length[:12]) > LARGEST:
        raise _too_large()
    try:
        said = _parse_body(request)
    except RequestDataTooBig:
        raise _too_large() from None
    except (BadRequest, SuspiciousOperation, MultiPartParserError):
        raise NotAnswered(400, "not_read", _("This is no form.")) from None
    if "key" not in said and (key := request.headers.get("Idempotency-Key")):
        said["key"] = key.strip().strip('"')
    return said


def _parse_body(request: HttpRequest) -> ProgramData:
    if request.content_type in FORMS:
        if request.FILES:
            raise NotAnswered(415, "unsupported_media_type", _("Send no files."))
        return ProgramData(request.POST.dict(), as_json=False)
    if request.content_type != "application/json":
        said = _("Send a form, or a JSON object as application/json.")
        raise NotAnswered(415, "unsupported_media_type", said)
    try:
        found = parse(request.body, Limits(bytes=LARGEST))
    except TooLarge as mistake:
        said = _("This is too much: %(why)s") % {"why": mistake}
        raise NotAnswered(413, "too_large", said) from None
    except InvalidMessage as mistake:
        said = _("This is not JSON: %(why)s") % {"why": mistake}
        raise NotAnswered(400, "not_read", said) from None
    if not isinstance(found, dict):
        raise NotAnswered(422, "invalid", _("Send a JSON object."))
    return ProgramData(found, as_json=True)


def _too_large() -> NotAnswered:
    said = _("Send at most %(most)s bytes.") % {"most": LARGEST}
    return NotAnswered(413, "too_large", said)
