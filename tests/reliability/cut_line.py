"""A line between this process and PostgreSQL that breaks at the worst moment: during a COMMIT, or a claim."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from tests.reliability.silent_line import SilentLine, end

Break = Literal["", "before", "after"]


class CutLine(SilentLine):
    """A TCP proxy that, once armed, breaks the connection at the next COMMIT, or at another statement that has `at`.

    "before": the server never gets it. "after": the server has carried it out, and the answer is lost.
    """

    armed: Break = ""
    at = b"COMMIT"
    cuts = 0

    @contextmanager
    def cut(self, when: Break, at: bytes = b"COMMIT") -> Iterator[None]:
        """Break the connection in the block, which happens once."""
        self.at, self.armed = at, when
        yield
        assert self.cuts == 1

    def _asked(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        if not (self.armed and self.at in data):
            return
        when, self.armed = self.armed, ""
        self._silent.add(client)  # it must not get the answer
        if when == "after":
            server.sendall(data)
            # The server closes when it has done its work and been told that nobody is there any more.
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
                while server.recv(65536):
                    pass
        self.cuts += 1
        end(client, server)
