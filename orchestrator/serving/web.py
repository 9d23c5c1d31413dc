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
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.utils.module_loading import import_string

from orchestrator.configuration.conf import SettingRefused
from orchestrator.serving import CannotStart
from orchestrator.serving.port import bind

LARGEST_SOCKET_MESSAGE = 65_536  # bytes a browser may send at once over its WebSocket
GRACE = 2  # seconds that open requests have at the end
SELDOM = 100  # collections of the middle generation to one of the oldest
SWITCH = 0.001  # seconds until a thread yields: the fetches of pages must not delay the hints to them


def open_listener(where: str) -> socket.socket:
    """Return the socket with the file descriptor `where`, or one that is bound to `where` now, as in "0.0.0.0:8000".

    Raises:
        CannotStart: it is no address, or the port is in use, or not for this user.
    """
    if where.isdecimal():
        return socket.socket(fileno=int(where))
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal():
        raise CannotStart(f"{where!r} is no address: write HOST:PORT.")
    return bind(int(port), host)


def serve(where: str) -> None:
    """Serve the project on the socket `where`, as `listener` takes it, until SIGTERM.

    Raises:
        SettingRefused: a setting cannot be used; the socket is not touched then.
        CannotStart: the socket cannot be had.
    """
    # `serves` needs no uvicorn.
    from uvicorn import Server  # noqa: PLC0415

    server = Server(_configuration())
    sys.setswitchinterval(SWITCH)
    _freeze_loaded_objects()
    server.run(sockets=[open_listener(where)])


def _configuration() -> Any:
    from uvicorn import Config  # noqa: PLC0415

    from orchestrator.serving.request_timeout import PunctualProtocol  # noqa: PLC0415

    return Config(
        # This import reads the settings, as those of a web server.
        import_string("orchestrator.asgi.application"),
        http=PunctualProtocol,
        lifespan="off",
        log_config=None,  # the project's own settings say how to log
        access_log=False,  # a server in front keeps one
        server_header=False,
        # The proxies that uvicorn believes; by default it would believe anybody on this host.
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        ws_max_size=LARGEST_SOCKET_MESSAGE,
        ws_per_message_deflate=False,  # hints are short, and each socket would compress them anew
        timeout_graceful_shutdown=GRACE,
    )


def _freeze_loaded_objects() -> None:
    """Exclude the loaded objects from garbage collection: 130,000, which take 80 ms without an answer."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, SELDOM)


def serves(site: str) -> bool:
    """Return whether the web server at the address `site` has its sign-in page."""
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
