"""Access to the console, over HTTP and over WebSocket alike.

A user with the permission to view processes sees all of them. A user with grants for some definitions sees only the
pages of these definitions. A grant opens a page only where the page names its definitions.
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

from monitoring.base.directions import show_directions
from monitoring.base.requests import is_from_script
from orchestrator.grants import definitions_of, grants_of
from orchestrator.missing_tables import MIGRATE, lacks_tables
from orchestrator.models import BulkOperation, Incident, ProcessInstance

VIEW = "orchestrator.view_processinstance"
EVENTS = "orchestrator.view_inboxevent"
AUDIT = "orchestrator.view_operatoraction"
DATA = "orchestrator.view_data_processinstance"
"""To see the data of processes, and not only their status."""
REVEAL = "orchestrator.reveal_secrets"

BY_DEFINITION = (VIEW, DATA)
"""The permissions that count for one definition, when a grant gives them for it."""

SEEN = "procession_seen"
"""The request's attribute with the definitions that its user may see, sorted; templates read it too."""

SHOWS = "procession_shows"
"""The request's attribute with the definitions that its page shows, sorted."""

ViewFunction = Callable[..., HttpResponseBase]

Names = frozenset[str]

Scope = Callable[[HttpRequest, dict[str, Any]], Names]
"""The definitions that a page shows, by its request and the parts of its address; empty for any."""


class DefinitionReader(SimpleLazyObject):  # type: ignore[type-arg]  # not subscriptable at run time
    """The user of a request for a page of some definitions, with the permissions that they have for all of these."""

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


def _guard_methods(
    *methods: str,
) -> Callable[..., Callable[[ViewFunction], ViewFunction]]:
    """Make a decorator for views that answer some methods."""

    def decorator(
        *more: str, of: Scope | None = None
    ) -> Callable[[ViewFunction], ViewFunction]:
        to_these = require_http_methods(methods)
        return lambda view: to_these(_guard(view, *more, of=of))

    return decorator


page_for = _guard_methods("GET", "HEAD")
"""Opens a page to users who may view processes. Other users get 403; without a session the answer leads to sign-in.

It takes the permissions that are needed besides, and `of`: the definitions of the page. Users with grants for all of
these may open it too.
"""

action_for = _guard_methods("POST")
"""The same for an address that does something."""

form_for = _guard_methods("GET", "HEAD", "POST")
"""The same for a page with a form that is sent to its own address."""


def may_view(user: Any, *more: str) -> bool:
    """Whether the user may view processes, and has further permissions."""
    return bool(
        user.is_authenticated and user.is_active and user.has_perms([VIEW, *more])
    )


def visible_definitions(request: HttpRequest) -> frozenset[str] | None:
    """Return the definitions that the user of a request may see; None for all."""
    seen: tuple[str, ...] | None = getattr(request, SEEN, None)
    return None if seen is None else frozenset(seen)


def shown_definitions(request: HttpRequest) -> tuple[str, ...]:
    """Return the definitions that a page shows, where its user may not see all; empty for users who may."""
    shown: tuple[str, ...] = getattr(request, SHOWS, ())
    return shown


def shows_only(request: HttpRequest, definition: str) -> bool:
    """Whether an answer may show everything of one definition to the user of this request."""
    seen = visible_definitions(request)
    return seen is None or shown_definitions(request) == (definition,)


def definitions_visible_to(user: Any) -> frozenset[str] | None:
    """Return the definitions whose processes a user may view; None for all."""
    return definitions_of(user, VIEW)


def _guard(view: ViewFunction, *more: str, of: Scope | None) -> ViewFunction:
    @login_not_required  # a middleware would send scripts to a page that they cannot show
    @wraps(view)
    def guarded(
        request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _ask_to_sign_in(request)
        try:
            if not may_open(request, kwargs, *more, of=of):
                return _redirect(request, request.path if of is list_scope else "")
            return show_directions(view(request, *args, **kwargs))
        except DatabaseError as error:
            if not lacks_tables(error):
                raise
            return HttpResponse(MIGRATE, "text/plain", status=503)

    return guarded


def may_open(
    request: HttpRequest, parts: dict[str, Any], *more: str, of: Scope | None = None
) -> bool:
    """Whether the user of a request may open an address.

    If grants open it, the user of the request becomes a `DefinitionReader` of the definitions granted.

    Args:
        request: as it came.
        parts: of the address.
        more: further permissions that are needed.
        of: the definitions of the address; without it, grants do not open the address.
    """
    setattr(request, SEEN, None)
    if of is not None:
        _narrow(request, of, parts)
    return may_view(request.user, *more)


def _narrow(request: HttpRequest, of: Scope, parts: dict[str, Any]) -> None:
    """Replace the user of the request by a reader of its definitions, if only grants open the address."""
    user: Any = request.user
    if not user.is_active or user.has_perms(BY_DEFINITION):
        return
    if not any(map(grants_of(user).get, BY_DEFINITION)):
        return
    if definitions := of(request, parts):
        mine = definitions_visible_to(user)
        setattr(request, SEEN, None if mine is None else tuple(sorted(mine)))
        setattr(request, SHOWS, tuple(sorted(definitions)))
        request.user = DefinitionReader(user, definitions)  # type: ignore[assignment]  # as Django's own lazy one


def _redirect(request: HttpRequest, path: str) -> HttpResponseBase:
    """Redirect a user with grants to the list of one of their definitions.

    Args:
        path: of that list; "" for none.

    Raises:
        PermissionDenied: the user has no grants, there is no list, or the address names a definition.
    """
    mine = definitions_visible_to(request.user) if request.user.is_active else None
    if not (path and mine) or request.GET.get("definition"):
        raise PermissionDenied
    query = {**request.GET.dict(), "definition": min(mine)}
    return redirect(f"{path}?{urlencode(query)}")


def process_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definition of the process that an address names."""
    return names_of_process(parts.get("pk") or parts["process"])


def bulk_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definitions to which the bulk operation in an address is limited."""
    return names_of_operation(parts.get("pk") or parts["operation"])


def definition_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definition that an address names."""
    return frozenset([parts["name"]])


def cause_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definition of the failures of one `cause`."""
    return names_of_cause(parts["cause"])


def reader_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return all definitions that the user may see."""
    return definitions_visible_to(request.user) or Names()


def list_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definition that `?definition=` names."""
    name = request.GET.get("definition", "").replace("\0", "")
    return frozenset([name] if name else [])


def selection_scope(request: HttpRequest, parts: dict[str, Any]) -> Names:
    """Return the definition of what `?definition=` or `?cause=` selects."""
    if "cause" in request.GET:
        return names_of_cause(request.GET["cause"])
    return list_scope(request, parts)


def names_of_process(pk: UUID) -> Names:
    """Return the definition of a process; none for an unknown process."""
    processes = ProcessInstance.objects.filter(pk=pk)
    return frozenset(processes.values_list("name", flat=True))


def names_of_cause(cause: str) -> Names:
    """Return the definition of the failures of one cause; none for failures without a process, or an unknown cause."""
    fingerprint = cause.replace("\0", "")
    failures = Incident.objects.filter(fingerprint=fingerprint).order_by()
    renamed = Incident.objects.renamed(fingerprint)
    for rows in (failures, renamed) if fingerprint else ():
        names = rows.values_list("instance__name", flat=True)[:1]
        if found := frozenset(filter(None, names)):
            return found
    return frozenset()


def names_of_operation(pk: UUID) -> Names:
    """Return the definitions to which a bulk operation is limited; none without a limit, or without such an operation.

    Its selection limits it, or the grants of the user who began it.
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


def _ask_to_sign_in(request: HttpRequest) -> HttpResponseBase:
    if is_from_script(request):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path())
