"""`/readyz` of the real web server while its real parts die, fall silent and come back."""

import json
import os
import signal
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from django.db import transaction

from orchestrator import start_process
from tests.apps.watched.fixtures import Begin, all_done, begin, said, watched
from tests.apps.watched.processes import Watched
from tests.apps.watched.steps import Work
from tests.reliability.silent_line import SilentLine, Way
from tests.services.database import NEEDS_SERVER
from tests.services.patience import bar, wait_for
from tests.services.site import Site
from tests.services.sizes import first_of
from tests.services.valkey import ValkeyServer

__all__ = ["begin", "watched"]

SOON = 15.0
"""Seconds after which the death of a part must be seen."""


def ready(site: Site) -> tuple[int, dict[str, object]]:
    """Return status and body of one probe, which must have its answer soon whatever the parts do."""
    connection = HTTPConnection(urlsplit(site.url).netloc, timeout=60)
    since = time.monotonic()
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    assert time.monotonic() - since < bar(4)
    return found


def ready_again(site: Site, seconds: float = SOON) -> None:
    wait_for(lambda: ready(site)[0] == 200, seconds, lambda: ready(site))


def seen_in_time(site: Site, part: str) -> None:
    """Wait until a part is seen to be down, which may take no longer than it is promised."""

    def is_down() -> bool:
        status, found = ready(site)
        return (status, found[part]) == (503, "down")

    since = time.monotonic()
    wait_for(is_down, SOON, lambda: ready(site))
    assert time.monotonic() - since < bar(SOON)


@pytest.fixture
def site(transactional_db: None, valkey: ValkeyServer) -> Iterator[Site]:
    yield from served()


def served() -> Iterator[Site]:
    site = Site()
    site.start()
    ready_again(site, 5)
    yield site
    site.stop()


def test_valkey_is_killed_or_stands_still(site: Site, valkey: ValkeyServer) -> None:
    valkey.kill()
    seen_in_time(site, "redis")
    valkey.start()
    ready_again(site)

    assert valkey.child.process is not None
    os.kill(valkey.child.process.pid, signal.SIGSTOP)
    try:
        seen_in_time(site, "redis")
    finally:
        os.kill(valkey.child.process.pid, signal.SIGCONT)
    ready_again(site)


@pytest.mark.parametrize("number", first_of([signal.SIGSTOP, signal.SIGKILL]))
def test_workers_die_or_stop(number: signal.Signals, site: Site, begin: Begin) -> None:
    workers = begin(1)
    children = [*workers.pids, workers.supervisor.pid]
    with transaction.atomic():  # on SQLite who stands still as it writes lets no other
        for pid in reversed(children):
            os.kill(pid, number)
    try:
        start_process(Watched, Work("due", "sleep"))
        seen_in_time(site, "workers")
    finally:
        for pid in children if number == signal.SIGSTOP else []:
            os.kill(pid, signal.SIGCONT)

    others = begin(1)
    wait_for(all_done, SOON, lambda: said(others))
    ready_again(site)


@pytest.fixture
def led_site(line: SilentLine, valkey: ValkeyServer) -> Iterator[Site]:
    yield from served()


@NEEDS_SERVER
@pytest.mark.parametrize("way", first_of(["swallowed", "dropped"]))
def test_postgresql_falls_silent(led_site: Site, line: SilentLine, way: Way) -> None:
    line.fall_silent_for_all(way)
    seen_in_time(led_site, "database")

    line.speak()
    ready_again(led_site, 2 * SOON)


@NEEDS_SERVER
def test_postgresql_refuses_connections(led_site: Site, line: SilentLine) -> None:
    line.close()

    seen_in_time(led_site, "database")
