"""Who may see the console, over HTTP and over WebSocket alike.

Who has the permission to look at processes sees all of them. Who has it by grants, for some definitions alone, sees the
pages that show these definitions and no other, and none of the others: a page lets nobody in by a grant unless it says
what it is of.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_http_methods

from monitoring.open_pages import by_script
from orchestrator.grants import definitions_of, grants_of
from orchestrator.missing_tables import MIGRATE, lacks_tables
from orchestrator.models import BulkOperation, Incident, ProcessInstance

VIEW = "orchestrator.view_processinstance"
EVENTS = "orchestrator.view_inboxevent"
AUDIT = "orchestrator.view_operatoraction"
DATA = "orchestrator.view_data_processinstance"
"""To see what processes are about, and not only how they stand."""
REVEAL = "orchestrator.reveal_secrets"

BY_DEFINITION = (VIEW, DATA)
"""What is seen of the processes of one definition by whoever has these permissions for it."""

SEEN = "procession_seen"
"""Under which the request of whoever sees some definitions alone has their names in order, for templates too."""

SHOWS = "procession_shows"
"""Under which such a request has the names of those of which its page shows something, in order."""

View = Callable[..., HttpResponseBase]

Names = frozenset[str]

DefinitionsOf = Callable[[HttpRequest, dict[str, Any]], Names]
"""The definitions of which a page shows something, by its request and the parts of its address; none for any."""


class ReaderOf(SimpleLazyObject):  # type: ignore[type-arg]  # it takes none when it runs
    """The user of a request for a page of some definitions: what they may see of all these, they may see here."""

    def __init__(self, user: Any, definitions: Names) -> None:
        self.__dict__.update(_user=user, _definitions=definitions)
        super().__init__(lambda: user)

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        user = self.__dict__["_user"]
        if obj is None and permission in BY_DEFINITION:
            mine = definitions_of(user, permission)
            return mine is None or self.__dict__["_definitions"] <= mine
        return bool(user.has_perm(permission, obj))

    def has_perms(self, permissions: Any, obj: Any = None) -> bool:
        return all(self.has_perm(permission, obj) for permission in permissions)


def _answers(*methods: str) -> Callable[..., Callable[[View], View]]:
    """A decorator for views that answer to some methods."""

    def decorator(
        *more: str, of: DefinitionsOf | None = None
    ) -> Callable[[View], View]:
        to_these = require_http_methods(methods)
        return lambda view: to_these(_guarded(view, *more, of=of))

    return decorator


page_for = _answers("GET", "HEAD")
"""Lets those in who may look at processes; the others get 403, the signed-out are asked to sign in.

It takes the permissions that are needed beside that one, and `of`: the definitions that the page is about, who may look
at the processes of all these gets in as well.
"""

action_for = _answers("POST")
"""The same for an address that does something."""

form_for = _answers("GET", "HEAD", "POST")
"""The same for a page with a form that is sent to its own address."""


def may_view(user: Any, *, events: bool = False) -> bool:
    """Whether the user may look at processes at all, and also at events if those are wanted."""
    return may(user, *([EVENTS] if events else []))


def may(user: Any, *more: str) -> bool:
    """Whether the user may look at processes, and has some permissions more."""
    return bool(
        user.is_authenticated and user.is_active and user.has_perms([VIEW, *more])
    )


def seen_in(request: HttpRequest) -> frozenset[str] | None:
    """The definitions that the reader of a page may see something of; None for all that there are."""
    seen: tuple[str, ...] | None = getattr(request, SEEN, None)
    return None if seen is None else frozenset(seen)


def shown_in(request: HttpRequest) -> tuple[str, ...]:
    """The definitions of which a page shows something, where its reader may see some alone; else none are named."""
    shown: tuple[str, ...] = getattr(request, SHOWS, ())
    return shown


def shows_only(request: HttpRequest, definition: str) -> bool:
    """Whether an answer may show all that there is of one definition to the reader of this page."""
    return seen_in(request) is None or shown_in(request) == (definition,)


def seen_by(user: Any) -> frozenset[str] | None:
    """The definitions whose processes a user may look at; None for all that there are."""
    return definitions_of(user, VIEW)


def _guarded(view: View, *more: str, of: DefinitionsOf | None) -> View:
    @login_not_required  # a middleware would send scripts to a page that they cannot show
    @wraps(view)
    def guarded(
        request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _signed_out(request)
        try:
            if not lets_in(request, kwargs, *more, of=of):
                return _elsewhere(request, request.path if of is of_list else "")
            return view(request, *args, **kwargs)
        except DatabaseError as error:
            if not lacks_tables(error):
                raise
            return HttpResponse(MIGRATE, "text/plain", status=503)

    return guarded


def lets_in(
    request: HttpRequest,
    parts: dict[str, Any],
    *more: str,
    of: DefinitionsOf | None = None,
) -> bool:
    """Whether the user of a request may open an address.

    Where they may see some definitions alone, the user of the request becomes a reader of those of the address.

    Args:
        request: as it came.
        parts: of the address.
        more: permissions that are needed beside the one to look at processes.
        of: the definitions that the address is about; without it, a permission for one definition opens nothing.
    """
    setattr(request, SEEN, None)
    if of is not None:
        _of_some(request, of, parts)
    return may(request.user, *more)


def _of_some(request: HttpRequest, of: DefinitionsOf, parts: dict[str, Any]) -> None:
    """Has the reader of a page of some definitions be asked what they may see of these."""
    user: Any = request.user
    if not user.is_active or user.has_perms(BY_DEFINITION):
        return
    if not any(map(grants_of(user).get, BY_DEFINITION)):
        return
    if definitions := of(request, parts):
        mine = seen_by(user)
        setattr(request, SEEN, None if mine is None else tuple(sorted(mine)))
        setattr(request, SHOWS, tuple(sorted(definitions)))
        request.user = ReaderOf(user, definitions)  # type: ignore[assignment]  # as Django's own lazy one


def _elsewhere(request: HttpRequest, path: str) -> HttpResponseBase:
    """Leads who sees some definitions alone to a list of one of them.

    Args:
        path: of that list; "" for none.

    Raises:
        PermissionDenied: there is none, or a definition is asked for that they may not see.
    """
    mine = seen_by(request.user) if request.user.is_active else None
    if not (path and mine) or request.GET.get("definition"):
        raise PermissionDenied
    query = {**request.GET.dict(), "definition": min(mine)}
    return redirect(f"{path}?{urlencode(query)}")


def of_process(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definition of the process that an address names."""
    return names_of_process(parts.get("pk") or parts["process"])


def of_operation(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definitions that the bulk operation is limited to which an address names."""
    return names_of_operation(parts.get("pk") or parts["operation"])


def of_definition(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definition that an address names."""
    return frozenset([parts["name"]])


def of_cause(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definition of the failures of one `cause`."""
    return names_of_cause(parts["cause"])


def of_all_seen(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """All definitions that the user may look at."""
    return seen_by(request.user) or Names()


def of_list(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definition that `?definition=` names: who may look at some alone is led to one of them."""
    name = request.GET.get("definition", "").replace("\0", "")
    return frozenset([name] if name else [])


def of_selection(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """The definition of what `?definition=` or `?cause=` selects."""
    if "cause" in request.GET:
        return names_of_cause(request.GET["cause"])
    return of_list(request, parts)


def names_of_process(pk: UUID) -> Names:
    """The definition of a process; none where there is no such process."""
    processes = ProcessInstance.objects.filter(pk=pk)
    return frozenset(processes.values_list("name", flat=True))


def names_of_cause(cause: str) -> Names:
    """The definition of the failures of one cause; none where they are of no process, or there is no such cause."""
    fingerprint = cause.replace("\0", "")
    failures = Incident.objects.filter(fingerprint=fingerprint)
    names = failures.order_by().values_list("instance__name", flat=True)[:1]
    return frozenset(filter(None, names)) if fingerprint else frozenset()


def names_of_operation(pk: UUID) -> Names:
    """The definitions that a bulk operation is limited to; none where it is not, or there is no such operation.

    By what it is done to, or because whoever has begun it may not do it to others.
    """
    operation = BulkOperation.objects.filter(pk=pk).first()
    if operation is None:
        return frozenset()
    if operation.definitions:
        return frozenset(operation.definitions)
    about = operation.about
    if operation.selection == "failures":
        return names_of_cause(about["cause"])
    if operation.selection == "failed-items":
        return names_of_operation(UUID(about["operation"]))
    return frozenset([about["definition"]] if about.get("definition") else [])


def _signed_out(request: HttpRequest) -> HttpResponseBase:
    if by_script(request):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path())
