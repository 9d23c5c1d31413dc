"""PostgreSQL connections of worker processes wait for nothing without end, in whatever project."""

import json

from orchestrator.configuration.environment import POSTGRES_KEEPALIVE, with_limits
from tests.services.python import printed

PROJECT = """
import json
from django.conf import settings
settings.configure(DATABASES={
    "default": {"ENGINE": "django.db.backends.postgresql", "NAME": "a", "OPTIONS": {"pool": True}},
    "lite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}, USE_TZ=True)
from django.db import connections as databases
from orchestrator.workers import connections
connections.limit_connections()
print(json.dumps([databases[name].settings_dict["OPTIONS"] for name in ("default", "lite")]))
"""


def test_connections_that_say_nothing_get_all_limits() -> None:
    options = with_limits({})

    assert options.items() >= POSTGRES_KEEPALIVE.items()
    assert options["options"] == (
        "-c idle_in_transaction_session_timeout=5000 -c lock_timeout=5000 -c statement_timeout=300000 -c jit=off"
    )


def test_what_a_project_says_itself_holds() -> None:
    said = "-c lock_timeout=1 -c search_path=a -c jit=on"
    given = {"connect_timeout": 60, "options": said}
    options = with_limits(given)

    assert options["connect_timeout"] == 60
    assert options["tcp_user_timeout"] == POSTGRES_KEEPALIVE["tcp_user_timeout"]
    assert options["options"].startswith(f"{said} -c ")
    assert options["options"].count("lock_timeout") == 1
    assert options["options"].count("jit") == 1


def test_worker_processes_of_any_project_have_limits_and_no_pool() -> None:
    [options, of_sqlite] = json.loads(printed(PROJECT))
    session = with_limits({})["options"]
    assert options == {**with_limits({}), "options": f"{session} -c TimeZone=UTC"}
    assert of_sqlite == {}
