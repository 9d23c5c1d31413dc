"""Who is told: a mail server and a webhook's receiver, real ones, that can be slow, silent, or refuse."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.services.ports import listener


@dataclass
class Posted:
    """What was posted to a receiver."""

    path: str
    headers: dict[str, str]
    body: bytes


class HookReceiver:
    """Takes what is posted to it and answers as it is told."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        """What it answers to the next ones; 204 to all others."""
        self.silent = threading.Event()
        """As long as it is set, nothing is answered."""
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(), False)
        self._server.socket.close()
        self._server.socket = listener("hooks")
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        port = self._server.socket.getsockname()[1]
        return f"http://127.0.0.1:{port}/hooks/ops?team=1"

    def stop(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.posted.append(Posted(self.path, headers, body))
                while receiver.silent.is_set() and not receiver._over.wait(0.02):
                    pass
                answers = receiver.answers or [(204, {})]
                status, more = answers.pop(0)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Says nothing."""

        return Handler


class Answering:
    """Answers the first request with these bytes, and goes on with more until nobody reads, or closes; gives its port.

    Args:
        answer: the bytes.
        endless: whether more follow.
    """

    def __init__(self, answer: bytes, endless: bool) -> None:
        self.answer, self.endless = answer, endless

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return int(self._listener.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            line, _ = self._listener.accept()
            with line:
                line.recv(64 * 1024)
                line.sendall(self.answer)
                while self.endless:
                    line.sendall(b"x" * 64 * 1024)
                line.shutdown(socket.SHUT_WR)
                while line.recv(64 * 1024):
                    pass


@dataclass
class MailServer:
    """A mail server that keeps what it is sent; enough of RFC 5321 for one client."""

    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    """As long as it is set, connections are taken, and nothing is said on them."""
    refusal: str = ""
    """What is answered to a mail instead of taking it."""

    def __post_init__(self) -> None:
        self._listener = listener("mail")
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=[line], daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as said:
            if self.silent.is_set():
                said.read()  # until the client goes
                return
            to: list[str] = []
            line.sendall(b"220 receiver\r\n")
            for words in iter(said.readline, b""):
                verb = words[:4].upper()
                if verb == b"RCPT":
                    to.append(words.partition(b"<")[2].partition(b">")[0].decode())
                if verb == b"DATA":
                    line.sendall(b"354 go on\r\n")
                    self._keep(to, b"".join(iter(said.readline, b".\r\n")))
                answer = self.refusal if verb == b"MAIL" and self.refusal else "250 ok"
                line.sendall(f"{answer}\r\n".encode())
                if verb == b"QUIT":
                    return

    def _keep(self, to: list[str], raw: bytes) -> None:
        mail = message_from_bytes(raw, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((list(to), mail))


def free_port() -> int:
    """Return a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
