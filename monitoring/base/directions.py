"""Characters that change the direction of a text: pages show them by their codes, so that no text disguises another."""

import re
from typing import TypeVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase

AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)

KINDS = ("text/html", "image/svg+xml")
"""The content types that people look at; files, exports and answers of the API stay exact."""

LEADS = (b"\xe2\x80", b"\xe2\x81", b"\xd8\x9c")
"""The first bytes of these characters in UTF-8."""

TURNING = rb"(?:\xd8\x9c|\xe2(?:\x80[\x8e\x8f\xaa-\xae]|\x81[\xa6-\xa9]))"
"""U+061C, U+200E, U+200F, U+202A to U+202E, and U+2066 to U+2069."""

PARTS = re.compile(rb"<textarea\b.*?</textarea>|<[^>]*>|" + TURNING, re.DOTALL)
CHARACTER = re.compile(TURNING)


def show_directions(response: AnyResponse) -> AnyResponse:
    """Write the code of these characters in a response that people look at.

    In attributes and text fields they become references: their values stay exact, and are boxes of their own.
    """
    kind = response.headers.get("Content-Type", "")
    if isinstance(response, HttpResponse) and kind.startswith(KINDS):
        if not getattr(response, "is_rendered", True):
            response.add_post_render_callback(show_directions)  # type: ignore[attr-defined]  # of a TemplateResponse
        elif any(lead in response.content for lead in LEADS):
            response.content = _shown(response.content)
    return response


def _shown(content: bytes) -> bytes:
    return PARTS.sub(_part, content) if CHARACTER.search(content) else content


def _part(found: re.Match[bytes]) -> bytes:
    if found[0].startswith(b"<"):
        return CHARACTER.sub(lambda one: b"&#%d;" % ord(one[0].decode()), found[0])
    return b"\\u%04x" % ord(found[0].decode())
