"""What the environment may say, and what it may not."""

from pathlib import Path

import pytest

from orchestrator.environment import (
    LONGEST_SOCKET_PATH,
    SettingRefused,
    database,
    flag,
    generated_secret,
    networks_by_name,
    numbers,
    prefixed,
    rates,
    socket_path,
    trusted_proxies,
)

DATA = Path("/somewhere/data")


def test_without_an_address_the_database_is_a_file_in_the_data_folder() -> None:
    settings = database("", DATA, web=False)

    assert settings["NAME"] == "/somewhere/data/db.sqlite3"
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in settings["OPTIONS"]["init_command"]


def test_a_postgresql_address_is_taken_apart() -> None:
    settings = database(
        "postgresql://me:p%40ss@db.example:5433/orders?sslmode=require", DATA, web=False
    )

    assert settings["USER"] == "me"
    assert settings["PASSWORD"] == "p@ss"
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == (
        "db.example",
        "5433",
        "orders",
    )
    assert settings["OPTIONS"]["sslmode"] == "require"


def test_a_postgresql_server_may_be_reached_through_a_socket() -> None:
    assert (
        database("postgresql://me@/orders?host=%2Frun%2Fpg", DATA, web=False)["HOST"]
        == "/run/pg"
    )


def test_a_worker_keeps_one_connection_and_the_web_server_has_a_pool() -> None:
    worker = database("postgresql://db/orders", DATA, web=False)
    web = database("postgresql://db/orders", DATA, web=True)

    assert worker["CONN_MAX_AGE"] is None
    assert "pool" not in worker["OPTIONS"]
    assert web["CONN_MAX_AGE"] == 0
    assert web["OPTIONS"]["pool"]["max_size"] > 1


def test_a_postgresql_session_that_stands_still_is_ended() -> None:
    options = database("postgresql://db/orders", DATA, web=False)["OPTIONS"]["options"]

    assert "idle_in_transaction_session_timeout=5000" in options
    assert "lock_timeout=5000" in options


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(SettingRefused, match="DATABASE_URL must look like"):
        database("mysql://db/orders", DATA, web=False)


@pytest.mark.parametrize(
    ("text", "on"), [("1", True), ("yes", True), ("0", False), ("", False)]
)
def test_a_switch_is_on_or_off(text: str, on: bool) -> None:
    assert flag({"SWITCH": text}, "SWITCH") is on


def test_a_switch_that_is_neither_is_refused_by_name() -> None:
    with pytest.raises(SettingRefused, match="SWITCH"):
        flag({"SWITCH": "perhaps"}, "SWITCH")


def test_a_source_may_have_two_secrets() -> None:
    assert prefixed({"SECRET_EXCHANGE": "old, new", "SECRET_OTHER": ""}, "SECRET_") == {
        "exchange": ["old", "new"]
    }


def test_a_setting_that_is_no_number_is_refused_by_name() -> None:
    assert numbers(
        {"P_LEASE": "2.5", "P_TRIES": "3"}, "P_", ["LEASE", "TRIES", "ABSENT"]
    ) == {"LEASE": 2.5, "TRIES": 3}
    with pytest.raises(SettingRefused, match="P_LEASE"):
        numbers({"P_LEASE": "soon"}, "P_", ["LEASE"])


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


def test_networks_and_rates_are_found_by_the_rest_of_their_names() -> None:
    environ = {
        "NET_BANK": "192.0.2.1, 2001:db8::/32",
        "RATE_BANK": "2.5",
        "RATE_X": "5,20",
    }

    found = networks_by_name(environ, "NET_")
    assert [str(network) for network in found["bank"]] == [
        "192.0.2.1/32",
        "2001:db8::/32",
    ]
    assert rates(environ, "RATE_") == {"bank": (2.5, 3), "x": (5, 20)}


@pytest.mark.parametrize("value", ["everywhere", "192.0.2.1/24", "*"])
def test_what_is_no_network_is_refused_with_the_variable_s_name(value: str) -> None:
    with pytest.raises(SettingRefused, match=r"^NET_BANK: "):
        networks_by_name({"NET_BANK": value}, "NET_")
    with pytest.raises(SettingRefused, match=r"^PROCESSION_TRUSTED_PROXIES: "):
        trusted_proxies({"PROCESSION_TRUSTED_PROXIES": value})


@pytest.mark.parametrize(
    "value", ["many", "0", "-1", "5,0", "5,2.5", "5,6,7", "inf", "nan"]
)
def test_what_is_no_rate_is_refused_with_the_variable_s_name(value: str) -> None:
    with pytest.raises(SettingRefused, match=r"^RATE_BANK is not like 5 or 5,20"):
        rates({"RATE_BANK": value}, "RATE_")
