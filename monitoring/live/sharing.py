"""Shared answers: requests of open pages that come together get one computed answer, when their keys are equal.

The key has everything that an answer may depend on: the address, the language, the time zone and the permissions. The
view gets a user that knows only the key. A view that asks for more, such as a name, a session or a cookie, runs again
with the real user, and its answer is not shared.

A request may get an answer whose computing began after the request came: it shows every commit that the request could
expect. So no answer is cached for a time, and no page sees older data than without sharing. Each request has passed
sign-in, middleware and permissions before.
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

from monitoring.base.access import (
    AUDIT,
    DATA,
    EVENTS,
    REVEAL,
    VIEW,
    visible_definitions,
)
from monitoring.base.requests import is_live
from orchestrator.containers import LruCache
from orchestrator.engine.operations import OPERATIONS
from orchestrator.grants import Grants, grants_of

ARRIVED = "procession.arrived"
"""The key in the ASGI scope for the time at which the request came, before its turn; by `time.monotonic()`."""

BEGAN = "procession.began"
"""The key for the time at which the computing of its answer began."""

KEPT = 100
"""Answers that are kept; an answer older than all waiting requests has no use."""

SharedView = Callable[..., HttpResponse]

SharedPart = TypeVar("SharedPart")


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


def shared_key(request: HttpRequest) -> SharedKey:
    """Return the key of the answer to a request of an open page."""
    query, user = request.GET.copy(), request.user
    query.pop("since", None)
    asked = {VIEW, EVENTS, AUDIT, DATA, REVEAL}
    asked |= {operation.permission for operation in OPERATIONS.values()}
    return SharedKey(
        (request.get_host(), request.path, query.urlencode(), request.is_secure()),
        translation.get_language(),
        timezone.get_current_timezone_name(),
        visible_definitions(request),
        bool(getattr(user, "is_staff", False)),
        frozenset((one, user.has_perm(one)) for one in asked),
        frozenset(grants_of(user).items()),
    )


class PersonalAccess(Exception):
    """A view asked for something that belongs to one person."""


class Personal:
    """A stand-in for something personal: it refuses every question, and remembers that one came."""

    asked = False

    def _refuse(self, *what: object) -> NoReturn:
        self.asked = True
        raise PersonalAccess(*what)

    __getattr__ = __str__ = __eq__ = _refuse
    __hash__ = object.__hash__


class PersonalItems(Personal):
    """The same for mappings, such as a session. `SharedReader` has no items, since templates try these first."""

    __getitem__ = __contains__ = __iter__ = Personal._refuse


class SharedReader(Personal):
    """The user of a shared answer, who knows only the key."""

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
        """Return the grants for `orchestrator.grants`."""
        return self._grants


@contextmanager
def hide_person(request: HttpRequest, key: SharedKey) -> Iterator[list[Personal]]:
    """Replaces everything personal in a request within the block."""
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
    """An answer, and the time at which its computing began."""

    began: float
    content: bytes
    headers: dict[str, str]


_answers = LruCache[SharedKey, SharedAnswer](KEPT)
"""The newest answer of each key."""


def share_answer(view: SharedView) -> SharedView:
    """Share an answer of a view between open pages that ask at the same time."""

    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_live(request):
            return view(request, *args, **kwargs)
        key, began = shared_key(request), time.monotonic()
        arrived = getattr(request, "scope", {}).get(ARRIVED, began)
        found = _answers.get(key)
        if found is not None and found.began >= arrived:
            return HttpResponse(found.content, headers=found.headers)
        if hasattr(request, "scope"):
            request.scope[BEGAN] = began
        response = None
        with hide_person(request, key) as instead, suppress(PersonalAccess):
            response = view(request, *args, **kwargs)
        # A view that catches all errors has caught the refusal too.
        if response is None or any(one.asked for one in instead):
            return view(request, *args, **kwargs)
        _keep(request, key, began, response)
        return response

    return answering


def _keep(
    request: HttpRequest, key: SharedKey, began: float, response: HttpResponse
) -> None:
    """Keep an answer, unless it failed or has something for one session alone, like the token of a form."""
    personal = response.cookies or request.META.get("CSRF_COOKIE_NEEDS_UPDATE")
    if response.status_code == HTTPStatus.OK and not personal:
        headers = dict(response.headers)
        _answers.keep(key, SharedAnswer(began, response.content, headers))


_parts: dict[Callable[[], Any], tuple[float, Any]] = {}


def shared_part(
    request: HttpRequest | None, compute: Callable[[], SharedPart]
) -> SharedPart:
    """Return the result of `compute`, for a part that is equal on all pages and for all users.

    Open pages with other addresses share it: it shows every commit up to their requests.
    """
    scope = getattr(request, "scope", {})
    if BEGAN not in scope:
        return compute()
    began, part = _parts.get(compute, (float("-inf"), None))
    if began < scope.get(ARRIVED, scope[BEGAN]):
        began, part = _parts[compute] = scope[BEGAN], compute()
    return cast(SharedPart, part)
