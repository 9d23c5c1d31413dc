"""A line between this process and PostgreSQL that breaks at the worst moment: while a COMMIT is on its way."""

import socket
import threading
from contextlib import suppress
from typing import Literal

Break = Literal["", "before", "after"]


class CutLine:
    """A TCP proxy that, once armed, breaks the connection at the next COMMIT.

    "before": the server never gets it. "after": the server has carried it out, and the answer is lost.
    """

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.armed: Break = ""
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
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
        """Pass on what the client sends, and cut the line at its COMMIT."""
        with suppress(OSError):
            while data := client.recv(65536):
                if self.armed and b"COMMIT" in data:
                    self._cut(client, server, data)
                    return
                server.sendall(data)
        self._end(client, server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        when, self.armed = self.armed, ""
        self.cuts += 1
        # The client must not get the answer: its end of the line goes first.
        self._end(client)
        if when == "after":
            server.sendall(data)
            # The server closes when it has done its work and been told that nobody is there any more.
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
                while server.recv(65536):
                    pass
        self._end(server)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        self._end(target)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
