"""The answer over HTTP at the address of open pages' sockets; `routing` answers WebSockets."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from monitoring.base.access import page_for


@page_for()
def upgrade_required(request: HttpRequest) -> HttpResponse:
    """Ask for a WebSocket. Without one, pages ask for changes by themselves every ten seconds."""
    return HttpResponse(
        status=HTTPStatus.UPGRADE_REQUIRED, headers={"Upgrade": "websocket"}
    )
