"""Addresses for long lists: `reverse` makes a template for each route, and ids are filled in."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from django.urls import get_script_prefix, get_urlconf, reverse
from django.utils.translation import get_language

FORMS = 1_000
"""Templates in the cache: a project has few hosts, prefixes and languages, but a request may name others."""

NUMBER = 9_000_000_000_000_000_000
"""A placeholder for numbers, as long as the largest key of a row; the place of the part is added to it."""


def url_for(name: str, *parts: UUID | int | str) -> str:
    """Return the same address as Django's `reverse`, in a fifth of its time.

    Args:
        name: the name of a route whose parts are ids, numbers and words.
        parts: the values of the parts; words have few values, like the names of actions.

    Raises:
        NoReverseMatch: there is no such address.
    """
    kinds = tuple(one if isinstance(one, str) else type(one) for one in parts)
    where = get_script_prefix(), get_urlconf(), get_language()
    return _address_template(name, kinds, where).format(*parts)


@lru_cache(FORMS)
def _address_template(
    name: str, kinds: tuple[type | str, ...], where: tuple[str | None, ...]
) -> str:
    """Return an address with fields for its ids and numbers, which `str.format` fills in.

    Args:
        name: the name of the route.
        kinds: the words themselves, and the types of other parts.
        where: script prefix, URL configuration and language.
    """
    parts: list[UUID | int | str] = []
    for place, kind in enumerate(kinds):
        if isinstance(kind, str):
            parts.append(kind)
        else:
            number = NUMBER + place
            parts.append(UUID(int=number) if issubclass(kind, UUID) else number)
    written = reverse(name, args=parts).replace("{", "{{").replace("}", "}}")
    for place, part in enumerate(parts):
        if not isinstance(part, str):
            written = written.replace(str(part), f"{{{place}}}")
    return written
