"""What many open pages ask for at once is computed once, and shared by those who would get the same.

An answer may be given to whoever asked before its computing began: it shows everything that was committed when they
asked. So nothing is kept for a time, and nobody sees less than without sharing. Who would get the same is not guessed:
while an answer is computed it is noted what was asked about its reader (a permission, a flag, or who it is), and it is
given to readers of whom all that is so too. Each request has passed sign-in, middleware and permissions before.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, TypeVar, cast

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject

from monitoring.access import seen_in
from monitoring.open_pages import is_live
from orchestrator.grants import Grants, grants_of

ARRIVED = "procession.arrived"
"""Under which the ASGI scope of a request says when it came, before it waited for its turn; by `time.monotonic()`."""

BEGAN = "procession.began"
"""Under which it says when the computing of the answer began."""

KEPT = 100
"""SharedAnswers that are kept; one that is older than those who wait is of no use."""

Asked = dict[tuple[str, str], Any]
"""What was asked about a reader, with the answers: ("may", a permission), ("granted", "") or ("is", an attribute)."""

Place = tuple[Any, ...]

View = Callable[..., HttpResponse]

Part = TypeVar("Part")


class Reader(SimpleLazyObject):  # type: ignore[type-arg]  # it takes none when it runs
    """A request's user, of whom it is noted what is asked: a permission, a flag, or whatever belongs to nobody else."""

    def __init__(self, user: Any, asked: Asked) -> None:
        self.__dict__.update(_user=user, _asked=asked)
        super().__init__(partial(_in_person, user, user, asked))

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        user = self.__dict__["_user"]
        if obj is not None:
            return bool(_in_person(user, user, self._asked).has_perm(permission, obj))
        self._asked["may", permission] = user.has_perm(permission)
        return bool(self._asked["may", permission])

    def has_perms(self, permissions: Iterable[str], obj: Any = None) -> bool:
        return all(self.has_perm(permission, obj) for permission in permissions)

    def procession_grants(self) -> Grants:
        """What they may for some definitions alone, which those share who may the same."""
        self._asked["granted", ""] = grants_of(self.__dict__["_user"])
        found: Grants = self._asked["granted", ""]
        return found

    @property  # type: ignore[misc]  # what `isinstance` asks for, as templates do
    def __class__(self) -> Any:
        return self.__dict__["_user"].__class__

    def __getitem__(self, name: str) -> Any:
        raise TypeError("a user has no items, for which templates ask first")

    def __getattr__(self, name: str) -> Any:
        user = self.__dict__["_user"]
        try:
            flag = getattr(user, name)
        except AttributeError:  # people of another class may have it
            self._asked["is", "__class__"] = user.__class__
            raise
        if not isinstance(flag, bool):
            return super().__getattr__(name)
        self._asked["is", name] = flag
        return flag


def _in_person(thing: Any, user: Any, asked: Asked) -> Any:
    """Gives out what belongs to one person, which is noted: a key is that of its class alone."""
    asked["is", "__class__"], asked["is", "pk"] = user.__class__, user.pk
    return thing


@contextmanager
def noting(request: HttpRequest) -> Iterator[Asked]:
    """Notes what is asked about the reader of a request within the block."""
    asked: Asked = {}
    user: Any = request.user
    before = {name: getattr(request, name) for name in ("user", "session", "COOKIES")}
    request.user = cast(Any, Reader(user, asked))
    for name in ("session", "COOKIES"):
        own = SimpleLazyObject(partial(_in_person, before[name], user, asked))
        setattr(request, name, own)
    try:
        yield asked
    finally:
        for name, value in before.items():
            setattr(request, name, value)


@dataclass(frozen=True)
class SharedAnswer:
    """What was answered where, when its computing began, and to a reader of whom what was so."""

    place: Place
    began: float
    asked: Asked
    content: bytes
    headers: dict[str, str]

    def fits(self, user: Any) -> bool:
        """Whether all that was asked about its reader is so of this one."""
        return all(
            value == _said_of(user, kind, name)
            for (kind, name), value in self.asked.items()
        )


def _said_of(user: Any, kind: str, name: str) -> Any:
    """What is so of a reader."""
    if kind == "granted":
        return grants_of(user)
    return user.has_perm(name) if kind == "may" else getattr(user, name, None)


class SharedAnswers:
    """The newest answers to open pages."""

    def __init__(self) -> None:
        self._kept: deque[SharedAnswer] = deque(maxlen=KEPT)

    def find(self, place: Place, arrived: float, user: Any) -> SharedAnswer | None:
        """An answer for a reader who asked at `arrived`."""
        for answer in reversed(self._kept.copy()):
            if answer.began < arrived:
                continue
            if answer.place == place and answer.fits(user):
                return answer
        return None

    def add(self, answer: SharedAnswer) -> None:
        self._kept.append(answer)


_answers = SharedAnswers()


def shared(view: View) -> View:
    """Lets open pages that ask a view at the same time share its answer."""

    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_live(request):
            return view(request, *args, **kwargs)
        place, began = _place(request), time.monotonic()
        arrived = getattr(request, "scope", {}).get(ARRIVED, began)
        found = _answers.find(place, arrived, request.user)
        if found is not None:
            return HttpResponse(found.content, headers=found.headers)
        if hasattr(request, "scope"):
            request.scope[BEGAN] = began
        with noting(request) as asked:
            response = view(request, *args, **kwargs)
        # A form's token is for one session alone, and who has no key cannot be told from others.
        if response.status_code == HTTPStatus.OK and not (
            response.cookies
            or request.META.get("CSRF_COOKIE_NEEDS_UPDATE")
            or asked.get(("is", "pk"), "") is None
        ):
            headers = dict(response.headers)
            _answers.add(SharedAnswer(place, began, asked, response.content, headers))
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


def _place(request: HttpRequest) -> Place:
    """What else an answer depends on: the address, without what the page shows already, and how the reader reads."""
    query = request.GET.copy()
    query.pop("since", None)
    return (
        request.get_host(),
        seen_in(request),
        request.is_secure(),
        request.path,
        query.urlencode(),
        translation.get_language(),
        timezone.get_current_timezone_name(),
    )
