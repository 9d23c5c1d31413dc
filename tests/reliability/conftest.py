"""What all tests of this folder have: they commit for real, and share two workers and lines that fall silent."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.apps.ordered_commands import handlers
from tests.reliability.silent_line import SilentLine, postgresql
from tests.services.crews import VISITS, crew
from tests.services.database import led_over
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

hands = crew()
"""Two workers; the test starts them."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have each test commit for real that does not say otherwise: other processes are to see what it writes."""
    if item.get_closest_marker("django_db") is None:
        item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture
def workers(hands: Workers, valkey: ValkeyServer) -> Workers:
    """Run two workers; they are those of most tests, so that nothing is loaded for these alone."""
    hands.start()
    return hands


@pytest.fixture
def no_calls() -> Iterator[None]:
    """Let nothing be known of earlier calls for books and of visits in graphs, and leave nothing of them."""
    VISITS.unlink(missing_ok=True)
    handlers.forget()
    yield
    handlers.forget()


@pytest.fixture
def line(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SilentLine]:
    """Lead others' connections to PostgreSQL over a line that can fall silent; this process keeps its own."""
    line = SilentLine(postgresql())
    monkeypatch.setenv("DATABASE_URL", led_over(line.port))
    yield line
    line.close()
    with connection.cursor() as cursor:  # the server is still at something for them
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def line_to_redis(
    valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SilentLine]:
    """Lead others' connections to Valkey over a line that can fall silent."""
    line = SilentLine(str(valkey.socket))
    monkeypatch.setenv("REDIS_URL", f"redis://127.0.0.1:{line.port}/0")
    yield line
    line.close()
