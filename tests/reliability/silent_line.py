"""A line between PostgreSQL or Valkey and its clients that falls silent: nothing comes through, nobody is told."""

import ctypes
import socket
import struct
import threading
from contextlib import suppress
from typing import Literal

from tests.services.database import address_of_server
from tests.services.ports import listener

SO_ATTACH_FILTER = 26
RETURN = 0x06
"""The instruction of a socket's filter that lets so many bytes of a packet through."""

Way = Literal["swallowed", "dropped"]
Server = tuple[str, int] | str
"""Host and port, or the path of a unix socket."""


def postgresql() -> Server:
    """Return where PostgreSQL is."""
    host, port = address_of_server()
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)


class SilentLine:
    """A TCP proxy that falls silent.

    "swallowed": what is sent is received and goes nowhere, as behind a proxy or a server that stands still.
    "dropped": packets are lost, as behind a firewall that has forgotten the connection. Linux alone can do that here.

    Args:
        server: where it leads.
        at: the address of this machine that its clients know.
    """

    def __init__(self, server: Server, at: str = "127.0.0.1") -> None:
        self.server = server
        self.all_silent = False
        self._silent: set[socket.socket] = set()
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._listener = listener(f"line to {server}", at)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self, way: Way = "swallowed") -> None:
        """Let no connection that there is be heard of again; new ones work."""
        self._silent |= set(self._clients)
        if way == "dropped":
            for client in self._clients:
                with suppress(OSError):  # it has been closed
                    drop_packets(client)

    def fall_silent_for_all(self, way: Way = "swallowed") -> None:
        """Let new connections be silent too: they are accepted, and nothing answers."""
        self.all_silent = True
        self.fall_silent(way)

    def speak(self) -> None:
        """Let new connections be heard again."""
        self.all_silent = False

    def close(self) -> None:
        end(self._listener, *self._clients, *self._servers)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = self._connected()
            except OSError:
                return
            if self.all_silent:
                self._silent.add(client)
            self._clients.append(client)
            self._servers.append(server)
            for ways in ((client, server, client), (server, client, client)):
                threading.Thread(target=self._pass, args=ways, daemon=True).start()

    def _connected(self) -> socket.socket:
        if not isinstance(self.server, str):
            return socket.create_connection(self.server)
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.server)
        return server

    def _pass(
        self, source: socket.socket, target: socket.socket, client: socket.socket
    ) -> None:
        """Pass on what comes, as long as the line speaks; the end of one side as well."""
        with suppress(OSError):
            while data := source.recv(65536):
                if source is client:
                    self._asked(data, client, target)
                if client not in self._silent:
                    target.sendall(data)
            if client not in self._silent:
                target.shutdown(socket.SHUT_RDWR)

    def _asked(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        """Look at what a client sends, before it is passed on."""


def end(*sockets: socket.socket) -> None:
    """Close connections; closing alone does not wake the threads that wait."""
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


def drop_packets(connected: socket.socket) -> None:
    """Let the system throw away every packet that comes for a connection: it neither answers nor resets."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", RETURN, 0, 0, 0))
    filter_ = struct.pack("HL", 1, ctypes.addressof(program))
    connected.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filter_)
