"""What HTTP has to say at the address of the open pages' sockets, which `routing` answers."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers


@require_safe
@for_viewers
def live(request: HttpRequest) -> HttpResponse:
    """Asks for a WebSocket. Where the server has none, pages ask for changes by themselves every ten seconds."""
    return HttpResponse(
        status=HTTPStatus.UPGRADE_REQUIRED, headers={"Upgrade": "websocket"}
    )
