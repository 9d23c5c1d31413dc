"""The web server: uvicorn on a socket that is bound already, so that a new server takes over without a gap.

usage: python -m orchestrator.serving.web FD
       python -m orchestrator.serving.web HOST:PORT

`up` and systemd hand over the socket, by the number of its file descriptor; in a container it is bound here.
"""

import gc
import http
import http.client
import socket
import sys
from urllib.parse import urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.utils.module_loading import import_string

from orchestrator.conf import SettingRefused
from orchestrator.serving import CannotStart
from orchestrator.serving.port import taken

LARGEST_SOCKET_MESSAGE = 65_536  # bytes a browser may send at once over its WebSocket
GRACE = 2  # seconds that open requests have at the end
SELDOM = 100  # collections of garbage that is not old to one of all there is
SWITCH = 0.001  # seconds after which a thread gives way: what pages fetch must not hold up what they are told


def listener(where: str) -> socket.socket:
    """Return the socket with the file descriptor `where`, or one that is bound to `where` now, as in "0.0.0.0:8000".

    Raises:
        CannotStart: it is no address, or the port is in use, or not for this user.
    """
    if where.isdecimal():
        return socket.socket(fileno=int(where))
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal():
        raise CannotStart(f"{where!r} is no address: write HOST:PORT.")
    return taken(int(port), host)


def serve(where: str) -> None:
    """Serve the project on the socket `where`, as `listener` takes it, until SIGTERM.

    Raises:
        SettingRefused: a setting cannot be used; the socket is not touched then.
        CannotStart: the socket cannot be had.
    """
    # Who only asks whether it answers need not have uvicorn.
    import uvicorn  # noqa: PLC0415

    from orchestrator.serving.heads import PunctualProtocol  # noqa: PLC0415

    # Which reads the settings, as those of a web server.
    application = import_string("orchestrator.asgi.application")
    configuration = uvicorn.Config(
        application,
        http=PunctualProtocol,
        lifespan="off",
        log_config=None,  # the project's own settings say how to log
        access_log=False,  # a server in front keeps one
        server_header=False,
        # Who may say on whose behalf a request comes; uvicorn by itself would believe anybody on this host.
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        ws_max_size=LARGEST_SOCKET_MESSAGE,
        ws_per_message_deflate=False,  # hints are short, and each socket would pack them anew
        timeout_graceful_shutdown=GRACE,
    )
    sys.setswitchinterval(SWITCH)
    _keep_what_is_loaded()
    uvicorn.Server(configuration).run(sockets=[listener(where)])


def _keep_what_is_loaded() -> None:
    """Leaves out of the search for garbage what stays anyway: 130,000 objects, 80 ms in which no page is answered."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, SELDOM)


def answers(site: str) -> bool:
    """Tell whether the web server at the address `site` gives out its sign-in page."""
    connection = http.client.HTTPConnection(urlsplit(site).netloc, timeout=1)
    try:
        connection.request("GET", resolve_url(settings.LOGIN_URL))
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    try:
        serve(sys.argv[1])
    except (CannotStart, SettingRefused) as refused:
        sys.exit(str(refused))
