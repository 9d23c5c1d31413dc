"""What the environment may say, and what it may not."""

import pytest

from orchestrator.conf import SettingRefused
from orchestrator.variables import Variables, read

KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="
SHORT_KEY = "whsec_aGVsbG8="
PASSWORD = "correct-horse"
NUMBERS = [
    "LEASE_SECONDS",
    "HEARTBEAT_SECONDS",
    "SWEEP_SECONDS",
    "POLL_SECONDS",
    "SLICE_SECONDS",
    "PATIENCE_SECONDS",
    "EVENT_ATTEMPTS",
    "EVENT_TIMEOUT",
    "BACKOFF_SECONDS",
    "BACKOFF_CAP_SECONDS",
    "TRANSITIONS_LIMIT",
]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "PROCESSION_WEBHOOK_SECRET_EXCHANGE"):
        monkeypatch.delenv(name, raising=False)


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """Return the line by which these variables are refused."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingRefused) as refused:
        read()
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def test_nothing_has_to_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCESSION_DATA_DIR")

    monkeypatch.delenv("PROCESSION_DEMO")

    assert read().model_dump() == Variables.model_construct().model_dump()
    assert read().engine == {}


def test_an_empty_variable_is_as_if_it_were_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LEASE_SECONDS", "HTTPS", "QUEUES", "WEBHOOK_SECRET_BANK"):
        monkeypatch.setenv(f"PROCESSION_{name}", "")

    given = read()

    assert (given.engine, given.HTTPS, given.QUEUES) == ({}, False, [])
    assert given.WEBHOOK_SECRET == {}


def test_the_engine_s_settings_are_those_that_are_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROCESSION_LEASE_SECONDS", "7.5")
    monkeypatch.setenv("PROCESSION_EVENT_ATTEMPTS", "3")

    assert read().engine == {"LEASE_SECONDS": 7.5, "EVENT_ATTEMPTS": 3}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", ["-1", "nan", "inf", "-inf", "soon", " ", "1e300", "9" * 5_000, "3;4"]
)
def test_what_is_no_such_number_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = refusal(monkeypatch, **{f"PROCESSION_{name}": value})

    assert line.startswith(f"PROCESSION_{name} must be a ")
    assert " number from " in line
    assert len(line) < 120


@pytest.mark.parametrize(
    ("name", "value", "must"),
    [
        ("EVENT_ATTEMPTS", "0.5", "be a whole number from 1 to 1,000, not '0.5'."),
        ("EVENT_ATTEMPTS", "0", "be a whole number from 1 to 1,000, not '0'."),
        ("TRANSITIONS_LIMIT", "0", "be a whole number from 1 to 1,000,000,000,"),
        ("LEASE_SECONDS", "0", "be a number from 1 to 86,400, not '0'."),
        ("HEARTBEAT_SECONDS", "0", "be a number from 0.05 to 43,200, not '0'."),
        ("SWEEP_SECONDS", "0", "be a number from 0.05 to 3,600, not '0'."),
        ("POLL_SECONDS", "0", "be a number from 0.01 to 60, not '0'."),
        ("SLICE_SECONDS", "0", "be a number from 0.01 to 3,600, not '0'."),
        ("EVENT_TIMEOUT", "0", "be a number from 0.1 to 86,400, not '0'."),
        ("DEBUG", "perhaps", "be 1 or 0, not 'perhaps'."),
        ("HTTPS", "2", "be 1 or 0, not '2'."),
        ("LOG_LEVEL", "loud", "be debug, info, warning, error or critical,"),
        ("TIME_ZONE", "Mars/Base", "be a time zone such as Asia/Tokyo,"),
        ("TIME_ZONE", "Asia", "be a time zone such as Asia/Tokyo,"),
        ("TIME_ZONE", "/etc/hosts", "be a time zone such as Asia/Tokyo,"),
        ("APPS", "tests,no_such_app", "list apps that can be imported, not 'no_such"),
        ("APPS", ",", "list apps that can be imported, not ','"),
        (
            "QUEUES",
            "default,e mail",
            "list names of up to 50 letters, digits, ., - and _",
        ),
        ("QUEUES", "q" * 51, "list names of up to 50 letters, digits, ., - and _"),
        ("ALLOWED_HOSTS", "https://example.org", "list host names, without scheme"),
        ("ALLOWED_HOSTS", "example.org:8000", "list host names, without scheme"),
        ("TRUSTED_ORIGINS", "example.org", "list origins such as https://"),
        ("TRUSTED_ORIGINS", "https://example.org/path", "list origins such as"),
        ("TRUSTED_PROXIES", "everywhere", "list addresses and networks such as"),
        ("TRUSTED_PROXIES", "192.0.2.1/24", "list addresses and networks such as"),
        ("WEBHOOK_NETWORKS_BANK", "*", "list addresses and networks such as"),
        ("WEBHOOK_NETWORKS_BANK", ",", "list addresses and networks such as"),
        ("WEBHOOK_SECRET_BANK", ",", "be whsec_ and the base64 of 24 bytes"),
        ("WEBHOOK_SECRET", KEY, "have _ and another name after its own."),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_it_must_be(
    name: str, value: str, must: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = refusal(monkeypatch, **{f"PROCESSION_{name}": value})

    assert line.startswith(f"PROCESSION_{name} must {must}")


@pytest.mark.parametrize(
    "value",
    ["many", "0", "-1", "5,0", "5,2.5", "5,6,7", "inf", "nan", "1e7", "5,9999999"],
)
def test_what_is_no_rate_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = refusal(monkeypatch, PROCESSION_WEBHOOK_RATE_BANK=value)

    assert line.startswith("PROCESSION_WEBHOOK_RATE_BANK must be like 5 or 5,20")


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"HEARTBEAT_SECONDS": "6"},
            "PROCESSION_HEARTBEAT_SECONDS must be at most half of PROCESSION_LEASE_SECONDS, which is 10, not '6'.",
        ),
        (
            {"LEASE_SECONDS": "4"},
            "PROCESSION_HEARTBEAT_SECONDS must be at most half of PROCESSION_LEASE_SECONDS, which is 4, not 3.",
        ),
        (
            {"BACKOFF_SECONDS": "10", "BACKOFF_CAP_SECONDS": "5"},
            "PROCESSION_BACKOFF_CAP_SECONDS must be at least PROCESSION_BACKOFF_SECONDS, which is 10, not '5'.",
        ),
        (
            {"BACKOFF_SECONDS": "1000"},
            "PROCESSION_BACKOFF_CAP_SECONDS must be at least PROCESSION_BACKOFF_SECONDS, which is 1,000, not 300.",
        ),
    ],
)
def test_what_contradicts_another_variable_is_refused(
    variables: dict[str, str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {f"PROCESSION_{name}": value for name, value in variables.items()}

    assert refusal(monkeypatch, **named) == line


@pytest.mark.parametrize("family", ["NETWORKS", "RATE"])
def test_a_limit_of_a_source_that_does_not_exist_is_refused(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCESSION_WEBHOOK_SECRET_BANK", KEY)
    value = {"NETWORKS": "192.0.2.1", "RATE": "5"}[family]

    line = refusal(monkeypatch, **{f"PROCESSION_WEBHOOK_{family}_BNAK": value})

    assert line == (
        f"PROCESSION_WEBHOOK_{family}_BNAK is of a source that does not exist; "
        "PROCESSION_WEBHOOK_SECRET_BNAK makes it."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", f"mysql://me:{PASSWORD}@db/orders"),
        ("DATABASE_URL", f"postgresql://me:{PASSWORD}@db:port/orders"),
        ("DATABASE_URL", f"postgresql://me:{PASSWORD}@db:5432"),
        ("DATABASE_URL", f"postgresql://me:#{PASSWORD}@db/orders"),
        ("DATABASE_URL", "postgresql://[::1/orders"),
        ("DATABASE_URL", "sqlite://folder/file"),
        ("DATABASE_URL", "sqlite:///"),
        ("DATABASE_URL", "orders"),
        ("REDIS_URL", f"http://:{PASSWORD}@valkey"),
        ("REDIS_URL", f"redis://:{PASSWORD}@valkey:port/0"),
        ("REDIS_URL", "redis://valkey:99999"),
        ("REDIS_URL", "unix://"),
        ("REDIS_URL", "valkey:6379"),
        ("ORDER_LISTING_EXCHANGE_URL", f"ftp://me:{PASSWORD}@exchange"),
        ("ORDER_LISTING_EXCHANGE_URL", "exchange:8000"),
        ("ORDER_LISTING_EXCHANGE_URL", "http://exchange:port"),
        ("PROCESSION_SECRET_KEY", PASSWORD),
        ("PROCESSION_WEBHOOK_SECRET_BANK", SHORT_KEY),
        ("PROCESSION_WEBHOOK_SECRET_BANK", KEY.removeprefix("whsec_")),
        ("PROCESSION_WEBHOOK_SECRET_BANK", f"{KEY},{KEY[:-5]}"),
        ("PROCESSION_WEBHOOK_SECRET_BANK", f"{KEY},{KEY},{KEY}"),
    ],
)
def test_a_secret_that_cannot_be_used_is_refused_and_not_repeated(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = refusal(monkeypatch, **{name: value})

    assert line.startswith(f"{name} must ")
    assert not any(part in line for part in (PASSWORD, SHORT_KEY[6:], KEY[6:30]))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p%40ss@db.example:5433/orders?sslmode=require",
        "postgres:///orders",
        "postgresql://?service=orders",
        "sqlite:///folder/file",
        "sqlite:////folder/file",
    ],
)
def test_an_address_of_a_database_is_taken(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    taken = read().DATABASE_URL

    assert taken == url


@pytest.mark.parametrize(
    "url", ["redis://:secret@valkey:6379/1", "rediss://valkey", "unix:///run/v.sock"]
)
def test_an_address_of_a_valkey_is_taken(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", url)

    taken = read().REDIS_URL

    assert taken == url


@pytest.mark.parametrize(("text", "on"), [("1", True), ("Yes", True), ("0", False)])
def test_a_switch_is_on_or_off(
    text: str, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCESSION_HTTPS", text)

    assert read().HTTPS is on


def test_lists_are_words_with_commas_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROCESSION_QUEUES", "default, mail,")
    monkeypatch.setenv("PROCESSION_ALLOWED_HOSTS", "*,.example.org,[::1]")
    monkeypatch.setenv(
        "PROCESSION_TRUSTED_ORIGINS", "https://*.example.org,http://[::1]:8000"
    )
    monkeypatch.setenv("PROCESSION_APPS", "tests.apps.process_managers,examples")

    given = read()

    assert given.QUEUES == ["default", "mail"]
    assert given.ALLOWED_HOSTS == ["*", ".example.org", "[::1]"]
    assert given.TRUSTED_ORIGINS == ["https://*.example.org", "http://[::1]:8000"]
    assert given.APPS == ["tests.apps.process_managers", "examples"]


def test_a_source_s_secrets_and_limits_are_found_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROCESSION_WEBHOOK_SECRET_MY_BANK", f"{KEY}, {KEY}")
    monkeypatch.setenv("PROCESSION_WEBHOOK_SECRET_X", KEY)
    monkeypatch.setenv(
        "PROCESSION_WEBHOOK_NETWORKS_MY_BANK", "192.0.2.1, 2001:db8::/32"
    )
    monkeypatch.setenv("PROCESSION_WEBHOOK_RATE_MY_BANK", "2.5")
    monkeypatch.setenv("PROCESSION_WEBHOOK_RATE_X", "5, 20")

    given = read()

    assert given.WEBHOOK_SECRET == {"my_bank": [KEY, KEY], "x": [KEY]}
    assert [str(network) for network in given.WEBHOOK_NETWORKS["my_bank"]] == [
        "192.0.2.1/32",
        "2001:db8::/32",
    ]
    assert given.WEBHOOK_RATE == {"my_bank": (2.5, 3), "x": (5, 20)}
