"""Who may see the console, over HTTP and over WebSocket alike."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponseBase

VIEW = "orchestrator.view_processinstance"
EVENTS = "orchestrator.view_inboxevent"

View = Callable[..., HttpResponseBase]


def for_viewers(view: View) -> View:
    """Lets those in who may look at processes; the others get 403, the signed-out are asked to sign in."""
    return permission_required(VIEW, raise_exception=True)(view)


def for_event_viewers(view: View) -> View:
    """The same for those who may also look at events."""
    return permission_required([VIEW, EVENTS], raise_exception=True)(view)


def may_view(user: Any, *, events: bool = False) -> bool:
    """Whether the user may look at processes at all, and also at events if those are wanted."""
    wanted = [VIEW, EVENTS] if events else [VIEW]
    return bool(user.is_authenticated and user.is_active and user.has_perms(wanted))
