"""Who may see the console, over HTTP and over WebSocket alike."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from orchestrator.missing_tables import MIGRATE, lacks_tables

VIEW = "orchestrator.view_processinstance"
EVENTS = "orchestrator.view_inboxevent"
AUDIT = "orchestrator.view_operatoraction"
DATA = "orchestrator.view_data_processinstance"
"""To see what processes are about, and not only how they stand."""
REVEAL = "orchestrator.reveal_secrets"

View = Callable[..., HttpResponseBase]


def for_viewers(view: View) -> View:
    """Lets those in who may look at processes; the others get 403, the signed-out are asked to sign in."""
    return _guarded(view)


def for_event_viewers(view: View) -> View:
    """The same for those who may also look at events."""
    return _guarded(view, EVENTS)


def for_data_viewers(view: View) -> View:
    """The same for those who may also see what processes are about."""
    return _guarded(view, DATA)


def for_audit_viewers(view: View) -> View:
    """The same for those who may also see who did what."""
    return _guarded(view, AUDIT)


def may_view(user: Any, *, events: bool = False) -> bool:
    """Whether the user may look at processes at all, and also at events if those are wanted."""
    return may(user, *([EVENTS] if events else []))


def may(user: Any, *more: str) -> bool:
    """Whether the user may look at processes, and has some permissions more."""
    return bool(
        user.is_authenticated and user.is_active and user.has_perms([VIEW, *more])
    )


def by_script(request: HttpRequest) -> bool:
    """Whether an open page asks, and not a browser that will show the answer."""
    return request.headers.get("HX-Request") == "true"


def _guarded(view: View, *more: str) -> View:
    @login_not_required  # a middleware would send scripts to a page that they cannot show
    @wraps(view)
    def guarded(
        request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _signed_out(request)
        try:
            if not may(request.user, *more):
                raise PermissionDenied
            return view(request, *args, **kwargs)
        except DatabaseError as error:
            if not lacks_tables(error):
                raise
            return HttpResponse(MIGRATE, "text/plain", status=503)

    return guarded


def _signed_out(request: HttpRequest) -> HttpResponseBase:
    if by_script(request):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path())
