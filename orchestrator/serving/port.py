"""The web server's port: `up` binds it before anything else, and keeps it while the server restarts."""

import errno
import socket

from orchestrator.serving import CannotStart

LOOPBACK = "127.0.0.1"


def bind(port: int, host: str = LOOPBACK) -> socket.socket:
    """Return a socket bound to `port` of an IPv4 address of this machine; 0 takes any free one.

    Raises:
        CannotStart: the port is in use, or not for this user; or this machine has no such address.
    """
    # asyncio sets TCP_NODELAY only on a socket that says IPPROTO_TCP: without it the end of each answer would wait 40
    # ms for the browser to acknowledge its beginning.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"Port {port} is in use: stop what uses it, or choose another with --port."
            ) from None
        raise CannotStart(f"Port {port} cannot be used: {error.strerror}.") from None
    return listener


def free_port() -> int:
    """Return the number of a port that is free at the moment."""
    with bind(0) as listener:
        port: int = listener.getsockname()[1]
    return port
