"""What many open pages ask for at once is computed once, and given to all readers with the same key.

The key says all that an answer may depend on: the address, how its reader reads, and what they may. The view is given a
reader of whom it can ask no more than that. What asks for anything else of one person, as for a name, a session or a
cookie, is computed once more for that person, and shared with nobody.

An answer may be given to whoever asked before its computing began: it shows everything that was committed when they
asked. So nothing is kept for a time, and nobody sees less than without sharing. Each request has passed sign-in,
middleware and permissions before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar, cast

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from monitoring.access import AUDIT, DATA, EVENTS, REVEAL, VIEW, seen_in
from monitoring.open_pages import is_live
from orchestrator.collecting import Latest
from orchestrator.engine.operations import OPERATIONS
from orchestrator.grants import Grants, grants_of

ARRIVED = "procession.arrived"
"""Under which the ASGI scope of a request says when it came, before it waited for its turn; by `time.monotonic()`."""

BEGAN = "procession.began"
"""Under which it says when the computing of the answer began."""

KEPT = 100
"""Answers that are kept; one that is older than those who wait is of no use."""

View = Callable[..., HttpResponse]

Part = TypeVar("Part")


@dataclass(frozen=True)
class SharedKey:
    """All that a shared answer may depend on.

    Args:
        place: host, address without what the page shows already, and whether it is read over HTTPS.
        language, zone: how the reader reads.
        seen: the definitions that they may see something of; None for all.
        staff: whether they may open the admin.
        permissions: every permission that the console asks for, and whether they have it for all definitions.
        grants: the definitions for which they have others.
    """

    place: tuple[str, str, str, bool]
    language: str | None
    zone: str
    seen: frozenset[str] | None
    staff: bool
    permissions: frozenset[tuple[str, bool]]
    grants: frozenset[tuple[str, frozenset[str]]]


def key_of(request: HttpRequest) -> SharedKey:
    """The key of the answer to a request of an open page."""
    query, user = request.GET.copy(), request.user
    query.pop("since", None)
    asked = {VIEW, EVENTS, AUDIT, DATA, REVEAL}
    asked |= {operation.permission for operation in OPERATIONS.values()}
    return SharedKey(
        (request.get_host(), request.path, query.urlencode(), request.is_secure()),
        translation.get_language(),
        timezone.get_current_timezone_name(),
        seen_in(request),
        bool(getattr(user, "is_staff", False)),
        frozenset((one, user.has_perm(one)) for one in asked),
        frozenset(grants_of(user).items()),
    )


class PersonalAccess(Exception):
    """Something was asked that belongs to one person."""


class Personal:
    """Stands for what belongs to one person: whoever asks anything of it is refused, and that is remembered."""

    asked = False

    def _refuse(self, *what: object) -> NoReturn:
        self.asked = True
        raise PersonalAccess(*what)

    __getattr__ = __str__ = __eq__ = _refuse
    __hash__ = object.__hash__


class PersonalItems(Personal):
    """The same where there are items, as in a session; a reader has none, for which templates ask first."""

    __getitem__ = __contains__ = __iter__ = Personal._refuse


class SharedReader(Personal):
    """The reader of an answer that is shared, of whom nothing is known but what its key says."""

    is_authenticated = is_active = True
    is_anonymous = False

    def __init__(self, key: SharedKey) -> None:
        self.is_staff = key.staff
        self._may, self._grants = dict(key.permissions), dict(key.grants)

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        if obj is not None or permission not in self._may:
            self._refuse()
        return self._may[permission]

    def has_perms(self, permissions: Iterable[str], obj: Any = None) -> bool:
        return all(self.has_perm(permission, obj) for permission in permissions)

    def procession_grants(self) -> Grants:
        """What `orchestrator.grants` asks for."""
        return self._grants


@contextmanager
def without_person(request: HttpRequest, key: SharedKey) -> Iterator[list[Personal]]:
    """Has a request know no more of its reader within the block than the key does."""
    names = ("user", "session", "COOKIES")
    before = {name: getattr(request, name) for name in names}
    instead = [SharedReader(key), PersonalItems(), PersonalItems()]
    try:
        for name, one in zip(names, instead, strict=True):
            setattr(request, name, one)
        yield instead
    finally:
        for name, value in before.items():
            setattr(request, name, value)


@dataclass(frozen=True)
class SharedAnswer:
    """What was answered, and when its computing began."""

    began: float
    content: bytes
    headers: dict[str, str]


_answers = Latest[SharedKey, SharedAnswer](KEPT)
"""The newest answer of each key."""


def shared(view: View) -> View:
    """Lets open pages that ask a view at the same time share its answer."""

    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_live(request):
            return view(request, *args, **kwargs)
        key, began = key_of(request), time.monotonic()
        arrived = getattr(request, "scope", {}).get(ARRIVED, began)
        found = _answers.get(key)
        if found is not None and found.began >= arrived:
            return HttpResponse(found.content, headers=found.headers)
        if hasattr(request, "scope"):
            request.scope[BEGAN] = began
        response = None
        with without_person(request, key) as instead, suppress(PersonalAccess):
            response = view(request, *args, **kwargs)
        # Whoever catches all errors has caught the refusal too.
        if response is None or any(one.asked for one in instead):
            return view(request, *args, **kwargs)
        # A form's token is for one session alone.
        if response.status_code == HTTPStatus.OK and not (
            response.cookies or request.META.get("CSRF_COOKIE_NEEDS_UPDATE")
        ):
            headers = dict(response.headers)
            _answers.keep(key, SharedAnswer(began, response.content, headers))
        return response

    return answering


_parts: dict[Callable[[], Any], tuple[float, Any]] = {}


def shared_part(request: HttpRequest | None, compute: Callable[[], Part]) -> Part:
    """What `compute` returns: a part that all pages show alike, whatever their address and their reader.

    Hundreds of open pages of as many addresses wait for their answers; each shows what was committed when it asked.
    """
    scope = getattr(request, "scope", {})
    if BEGAN not in scope:
        return compute()
    began, part = _parts.get(compute, (float("-inf"), None))
    if began < scope.get(ARRIVED, scope[BEGAN]):
        began, part = _parts[compute] = scope[BEGAN], compute()
    return cast(Part, part)
