"""The exchange's HTTP side: POST /orders, POST /behaviour, GET /health."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples.exchange.book import Book, Reply

MOST_BYTES = 64 * 1024  # of a request's body
FIELDS = ("request_id", "order_id", "description")


class Refused(Exception):
    """A request that cannot be served, with the HTTP status that says so."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Exchange(ThreadingHTTPServer):
    """Listens on the loopback address; a port of 0 takes any free one."""

    request_queue_size = 128

    def __init__(self, port: int, book: Book) -> None:
        super().__init__(("127.0.0.1", port), Desk)
        self.book = book

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing about a client that went away, as one that is killed does."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on as it came


class Desk(BaseHTTPRequestHandler):
    """Serves one connection."""

    server: Exchange
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds for a silent client

    def do_GET(self) -> None:
        if self.path != "/health":
            return self._reply(Reply(404, {"error": "not found"}))
        return self._reply(
            Reply(200, {"status": "up", "orders": len(self.server.book)})
        )

    def do_POST(self) -> None:
        routes = {"/orders": self._order, "/behaviour": self._behave}
        try:
            body = self._body()
            if self.path not in routes:
                raise Refused(404, "no such address")
            self._reply(routes[self.path](body))
        except Refused as refused:
            self.close_connection = True
            self._reply(
                Reply(refused.status, {"error": "refused", "detail": str(refused)})
            )

    def _order(self, body: object) -> Reply:
        key = self.headers.get("Idempotency-Key", "")
        if not key:
            raise Refused(400, "send an Idempotency-Key header")
        if not isinstance(body, dict) or not all(
            isinstance(body.get(name), str) for name in FIELDS
        ):
            raise Refused(422, f"send {', '.join(FIELDS)} as text")
        return self.server.book.take(key, {name: body[name] for name in FIELDS})

    def _behave(self, body: object) -> Reply:
        try:
            self.server.book.behaviour = self.server.book.behaviour.changed(body)
        except ValueError as error:
            raise Refused(422, str(error)) from None
        return Reply(200, asdict(self.server.book.behaviour))

    def _body(self) -> object:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "send a Content-Length")
        if int(length) > MOST_BYTES:
            raise Refused(413, f"at most {MOST_BYTES} bytes")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refused(400, "send JSON") from None

    def _reply(self, reply: Reply) -> None:
        body = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing about requests; what matters is seen on the client's pages."""
