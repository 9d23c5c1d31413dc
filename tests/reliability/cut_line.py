"""A line between this process and PostgreSQL that breaks at the worst moment: during a COMMIT, or a claim."""

import socket
import threading
from contextlib import suppress
from typing import Literal

from tests.services.ports import listener

Break = Literal["", "before", "after"]


class CutLine:
    """A TCP proxy that, once armed, breaks the connection at the next COMMIT, or at another statement that has `at`.

    "before": the server never gets it. "after": the server has carried it out, and the answer is lost.
    """

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.armed: Break = ""
        self.at = b"COMMIT"
        self.cuts = 0
        self._muted: set[socket.socket] = set()
        self._listener = listener("cut line")
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # Closing alone does not wake the thread that waits in accept().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.server)
            threading.Thread(
                target=self._upwards, args=(client, server), daemon=True
            ).start()
            threading.Thread(
                target=self._pass, args=(server, client), daemon=True
            ).start()

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what the client sends, and cut the line at the statement that is waited for."""
        with suppress(OSError):
            while data := client.recv(65536):
                if self.armed and self.at in data:
                    self._cut(client, server, data)
                    return
                server.sendall(data)
        self._end(client, server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        when, self.armed = self.armed, ""
        self._muted.add(server)  # the client must not get the answer
        if when == "after":
            server.sendall(data)
            # The server closes when it has done its work and been told that nobody is there any more.
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
                while server.recv(65536):
                    pass
        self.cuts += 1
        self._end(client, server)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if source not in self._muted:
                    target.sendall(data)
        if source not in self._muted:
            self._end(target)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
