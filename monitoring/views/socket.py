"""What HTTP has to say at the address of the open pages' sockets, which `routing` answers."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from monitoring.access import page_for


@page_for()
def live(request: HttpRequest) -> HttpResponse:
    """Asks for a WebSocket. Where the server has none, pages ask for changes by themselves every ten seconds."""
    return HttpResponse(
        status=HTTPStatus.UPGRADE_REQUIRED, headers={"Upgrade": "websocket"}
    )
