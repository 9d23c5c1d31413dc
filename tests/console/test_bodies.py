"""Bodies that are too large, or too slow, asked of the real web server."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil
import pytest

from orchestrator.serving.bodies import LARGEST, SLOWEST, with_bounded_bodies
from tests.services.patience import bar, wait_for
from tests.services.site import Site
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PLACES = ("/hooks/exchange/", "/sign-in/", "/there/is/nothing/here/")
MUCH = 128 * 1_048_576
CHUNK = b"10000\r\n" + b"x" * 65_536 + b"\r\n"


@pytest.fixture(scope="module")
def site(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[Site]:
    site = Site()
    site.start()
    yield site
    site.stop()


def connected(site: Site) -> socket.socket:
    parts = urlsplit(site.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def head(place: str, *lines: str) -> bytes:
    """Return the head of a post."""
    words = [f"POST {place} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]
    return "\r\n".join(words).encode()


def memory(site: Site) -> int:
    return int(psutil.Process(site.program.pid).memory_info().rss)


def poured(line: socket.socket, part: bytes, limit: int) -> tuple[bytes, int]:
    """Send a part again and again, to a limit, until there is an answer; return it, and how much was sent."""
    sent = 0
    with suppress(ConnectionError):
        line.setblocking(False)
        while sent < limit:
            with suppress(BlockingIOError):
                return line.recv(65_536), sent
            with suppress(BlockingIOError):
                sent += line.send(part)
    line.settimeout(60)
    return line.recv(65_536), sent


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "said", [f"Content-Length: {MUCH}", "Transfer-Encoding: chunked"]
)
def test_too_large_a_body_is_refused_unread(place: str, said: str, site: Site) -> None:
    with suppress(HTTPError):
        urlopen(site.url + place, b"a=b", timeout=60)  # noqa: S310  what is loaded once is
    before = memory(site)
    since = time.monotonic()

    with connected(site) as line:
        line.sendall(head(place, said))
        answer, sent = poured(line, CHUNK, MUCH)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert time.monotonic() - since < bar(1)
    assert sent < MUCH / 4  # of which much lies between the two
    assert memory(site) - before < 16_000_000


def rest(line: socket.socket) -> bytes:
    """Return all that still comes until the server closes the connection."""
    found = b""
    while part := line.recv(65_536):
        found += part
    return found


def test_a_large_body_need_not_be_sent_and_a_smaller_one_is_read(site: Site) -> None:
    with connected(site) as line:
        said = f"Content-Length: {LARGEST + 1}"
        line.sendall(head("/sign-in/", said, "Expect: 100-continue"))
        assert line.recv(65_536).startswith(b"HTTP/1.1 413 ")
        assert rest(line) is not None
    with connected(site) as line:
        body = b"x" * (LARGEST // 2)
        line.sendall(head("/nowhere/", f"Content-Length: {len(body)}") + body)
        assert line.recv(65_536).startswith(b"HTTP/1.1 404 ")


@pytest.mark.once
def test_half_sent_bodies_and_heads_are_cut_and_others_answered(site: Site) -> None:
    begun = time.monotonic()
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(site)) for _ in range(600)]
        for number, line in enumerate(lines):
            place = PLACES[number % len(PLACES)]
            line.sendall(head(place, "Content-Length: 1000") + b"half of it")
        silent = [stack.enter_context(connected(site)) for _ in range(40)]
        for line in silent[:20]:
            line.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.")
        used = stack.enter_context(connected(site))
        others = []
        while time.monotonic() - begun < SLOWEST / 2:
            since = time.monotonic()
            with urlopen(f"{site.url}/sign-in/", timeout=60) as answer:  # noqa: S310
                others.append(time.monotonic() - since)
                assert answer.status == 200
            assert lives(used)
        wait_for(lambda: lives(used) and sockets(site) < 20, 30)
        assert lives(used)
        assert time.monotonic() - begun < bar(30)
        answers = {line.recv(65_536)[:13] for line in lines}
        assert {line.recv(65_536) for line in silent} == {b""}

    assert sorted(others)[len(others) // 2] < bar(0.2)
    assert answers == {b"HTTP/1.1 408 "}


def lives(line: socket.socket) -> bool:
    """Ask on a connection whether the process lives, which keeps it open."""
    line.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}") and (part := line.recv(65_536)):
        answer += part
    return answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"}")


def sockets(site: Site) -> int:
    """Return how many connections the web server has."""
    return len(psutil.Process(site.program.pid).net_connections("tcp"))


def test_an_application_that_has_answered_is_not_answered_for() -> None:
    sent: list[dict[str, Any]] = []
    parts = iter([b"x" * LARGEST, b"x"])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(parts), "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def hasty(scope: object, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] == "http.request":
            pass
        await send({"type": "http.response.body", "body": b"too late"})

    async def ask() -> None:
        await with_bounded_bodies(hasty)({"type": "http", "headers": []}, receive, send)

    asyncio.run(ask())

    assert [message["type"] for message in sent] == ["http.response.start"]
