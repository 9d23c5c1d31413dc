"""Workers and web server behind a PgBouncer in transaction mode, with three sessions for all of them."""

import os
import random
import signal
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User
from django.db import connection

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from examples.order_listing.promise import disagreements
from orchestrator import start_process
from orchestrator.configuration.environment import POSTGRES_LIMITS
from orchestrator.models import IssuedCommand, ProcessInstance, Status
from tests.apps.random_graphs import steps
from tests.apps.random_graphs.processes import RandomGraph
from tests.apps.random_graphs.steps import Dice
from tests.reliability.storm import press_retry
from tests.services import pgbouncer
from tests.services.crews import knowing, set_out, unfinished
from tests.services.database import NEEDS_SERVER
from tests.services.exchange import ExchangeProcess
from tests.services.patience import wait_for
from tests.services.pgbouncer import PgBouncer
from tests.services.program import run_command
from tests.services.site import Site
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers, hired

pytestmark = NEEDS_SERVER  # PgBouncer is for PostgreSQL

ORDERS = size(6, full=12)
GRAPHS = size(3, full=6)
graphs = knowing(RandomGraph)
IN_ORDERS = [Destination.BOTH, Destination.EXTERNAL, Destination.INTERNAL]


@pytest.fixture
def limits(transactional_db: None) -> Iterator[None]:
    """Give the role the limits that its connections cannot bring with them; sessions have them that begin later."""
    role = f'ALTER ROLE CURRENT_USER IN DATABASE "{connection.settings_dict["NAME"]}"'
    with connection.cursor() as cursor:
        for name, value in POSTGRES_LIMITS.items():
            cursor.execute(f"{role} SET {name} = {value}")
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"{role} RESET ALL")


@pytest.fixture
def pooler(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PgBouncer]:
    """Lead all that is started from now on through a PgBouncer; this process keeps its own connection."""
    if (program := pgbouncer.installed()) is None:
        pytest.skip(pgbouncer.REMEDY)
    with pgbouncer.running(program) as found:
        monkeypatch.setenv("DATABASE_URL", found.settings)
        yield found


@pytest.fixture
def site(limits: None, pooler: PgBouncer, valkey: ValkeyServer) -> Iterator[Site]:
    site = Site()
    site.start()
    yield site
    site.stop()


@pytest.fixture
def market(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run an exchange that calls back through the web server."""
    hook = f"{site.url}/hooks/exchange/"
    exchange = ExchangeProcess(hook, shortest=0.05, longest=0.2)
    exchange.start()
    monkeypatch.setenv("ORDER_LISTING_EXCHANGE_URL", exchange.url)
    yield
    exchange.stop()


@pytest.fixture
def workers(market: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Return a supervisor with two workers who know the graphs too."""
    set_out(monkeypatch)
    monkeypatch.delenv(steps.LEDGER)
    with hired() as hire:
        yield hire(2)


def test_all_that_runs_behind_it_ends_though_a_worker_is_killed(
    pooler: PgBouncer, site: Site, workers: Workers, administrator: User
) -> None:
    dice = random.Random(3)
    for seed in range(GRAPHS):
        start_process(RandomGraph, Dice(seed, 12))
    for number in range(ORDERS):
        place_order(IN_ORDERS[number % 3], "50 MWh base load, Tokyo area")
    os.kill(dice.choice(workers.pids), signal.SIGKILL)

    def all_end() -> bool:
        press_retry(administrator)
        done = ProcessInstance.objects.filter(status=Status.COMPLETED)
        return done.count() == ORDERS + GRAPHS

    wait_for(all_end, 30, lambda: unfinished(workers))
    due = IssuedCommand.objects.filter(wake_at__isnull=False)
    wait_for(lambda: not due.exists(), 30, lambda: unfinished(workers))
    with urlopen(site.link(administrator), timeout=60) as page:  # noqa: S310  the test's own site
        assert page.status == 200

    assert pooler.sessions() <= pgbouncer.SESSIONS
    assert disagreements() == []


def test_what_a_session_was_told_by_one_is_not_met_by_another(
    limits: None, pooler: PgBouncer, valkey: ValkeyServer
) -> None:
    """The supervisor waits for locks for a moment only: that is no longer said in the sessions once it is over."""
    with hired() as hire:
        hire(1)
        wait_for(lambda: pooler.sessions() > 0, 20)
        with pooler.connected() as one:
            for _ in range(20):
                assert one.execute("SHOW lock_timeout").fetchone() == ("5s",)


def test_limits_that_the_role_lacks_are_told(pooler: PgBouncer) -> None:
    told = run_command("check", "--database", "default").stderr

    assert "orchestrator.W010" in told
    assert "ALTER ROLE CURRENT_USER SET lock_timeout = 5000" in told


def test_limits_of_the_role_hold_for_all(limits: None, pooler: PgBouncer) -> None:
    told = run_command("check", "--database", "default")
    with pooler.connected() as one:
        limit = one.execute("SHOW idle_in_transaction_session_timeout").fetchone()

    assert ("W010" in told.stderr, told.returncode, limit) == (False, 0, ("5s",))
