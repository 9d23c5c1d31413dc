"""Who hangs up before the answer has come: the next one gets theirs, and nothing is left of the others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from urllib.parse import urlsplit

import psutil
import pytest

from bench.site import viewer
from orchestrator.serving import web
from tests.services.patience import wait_for
from tests.services.site import Site
from tests.services.sizes import size

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

AT_ONCE = size(20, full=200)


@pytest.fixture
def cookie(transactional_db: None) -> Iterator[str]:
    with viewer() as given:
        yield given


@pytest.mark.parametrize("path", ["/", "/livez", "/static/monitoring/none.css"])
def test_who_hangs_up_holds_up_nobody(path: str, cookie: str, live_site: Site) -> None:
    server = psutil.Process(live_site.program.pid)
    where = urlsplit(live_site.url)
    asked(where.netloc, path, cookie)
    before = server.num_threads()

    head = f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nCookie: {cookie}\r\n\r\n"
    with ExitStack() as open_ones:
        for _ in range(AT_ONCE):
            one = socket.create_connection((where.hostname, where.port))
            open_ones.enter_context(one)
            one.sendall(head.encode())

    assert asked(where.netloc, path, cookie) in (200, 404)
    wait_for(lambda: server.num_threads() <= before, 20, server.num_threads)
    assert web.serves(live_site.url)


def asked(netloc: str, path: str, cookie: str) -> int:
    connection = HTTPConnection(netloc, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status
