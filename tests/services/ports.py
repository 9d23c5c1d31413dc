"""Ports that tests listen at one after the other: what is told of one has the same environment in each of them."""

import socket

_used: dict[str, int] = {}


def listener(name: str, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket that listens where the last one of this name did, or where nobody does by now.

    Processes that tests start with the same environment are forked from one that has the project loaded.
    """
    try:
        found = socket.create_server((host, _used.get(name, 0)))
    except OSError:
        found = socket.create_server((host, 0))
    _used[name] = found.getsockname()[1]
    return found
