"""What Django's settings are made of."""

import gc
from pathlib import Path

import pytest

from orchestrator.configuration.environment import (
    LONGEST_SOCKET_PATH,
    database_settings,
    generated_secret,
    socket_path,
)
from tests.services.cases import cases

DATA = Path("/somewhere/data")


def test_without_an_address_the_database_is_a_file_in_the_data_folder() -> None:
    settings = database_settings("", DATA, web=False)

    assert settings["NAME"] == "/somewhere/data/db.sqlite3"
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in settings["OPTIONS"]["init_command"]


def test_a_postgresql_address_is_taken_apart() -> None:
    address = "postgresql://me:p%40ss@db.example:5433/orders?sslmode=require"
    settings = database_settings(address, DATA, web=False)

    assert (settings["USER"], settings["PASSWORD"]) == ("me", "p@ss")
    assert (settings["HOST"], settings["PORT"]) == ("db.example", "5433")
    assert settings["NAME"] == "orders"
    assert settings["OPTIONS"]["sslmode"] == "require"


def test_a_postgresql_server_may_be_reached_through_a_socket() -> None:
    address = "postgresql://me@/orders?host=%2Frun%2Fpg"

    assert database_settings(address, DATA, web=False)["HOST"] == "/run/pg"


def test_a_worker_keeps_one_connection_and_the_web_server_has_a_pool() -> None:
    worker = database_settings("postgresql://db/orders", DATA, web=False)
    web = database_settings("postgresql://db/orders", DATA, web=True)

    assert worker["CONN_MAX_AGE"] is None
    assert "pool" not in worker["OPTIONS"]
    assert web["CONN_MAX_AGE"] == 0
    assert web["OPTIONS"]["pool"]["max_size"] > 1


def test_a_postgresql_session_that_stands_still_is_ended() -> None:
    options = database_settings("postgresql://db/orders", DATA, web=False)["OPTIONS"][
        "options"
    ]

    assert "idle_in_transaction_session_timeout=5000" in options
    assert "lock_timeout=5000" in options


def test_through_pgbouncer_nothing_is_kept_in_a_session() -> None:
    address = "postgresql://db/orders?pgbouncer=true&sslmode=require"
    settings = database_settings(address, DATA, web=False)

    assert settings["DISABLE_SERVER_SIDE_CURSORS"]
    assert settings["OPTIONS"]["prepare_threshold"] is None
    assert settings["OPTIONS"]["sslmode"] == "require"
    assert not {"options", "pgbouncer"} & settings["OPTIONS"].keys()


def test_a_newer_pgbouncer_knows_on_which_sessions_statements_are_prepared() -> None:
    address = "postgresql://db/orders?pgbouncer=true&prepare_threshold=2"

    assert (
        database_settings(address, DATA, web=False)["OPTIONS"]["prepare_threshold"] == 2
    )


@cases(
    "address",
    "mysql://db/orders",
    "postgresql://db/orders?pgbouncer=yes",
    "postgresql://db/orders?prepare_threshold=soon",
)
def test_another_database_and_parameters_of_no_sense_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="neither a SQLite nor a PostgreSQL"):
        database_settings(address, DATA, web=False)


def test_a_secret_is_made_once_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"

    first = generated_secret(path, "whsec_")

    assert generated_secret(path) == first
    assert first.startswith("whsec_")
    assert len(first) > 50
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_socket_whose_path_would_be_too_long_is_put_nearer_to_the_root() -> None:
    near, far = Path("/data"), Path("/data") / ("deep" * 40)

    assert socket_path(near) == near / "valkey.sock"
    assert len(str(socket_path(far))) < LONGEST_SOCKET_PATH
    assert socket_path(far) != socket_path(far / "other")


def test_garbage_is_collected_and_not_looked_for_in_what_stays_until_the_end() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 50_000
