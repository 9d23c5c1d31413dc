"""What the environment may say, and what it may not."""

import pytest

from orchestrator.configuration.variables import Variables
from tests.services.cases import cases, words
from tests.unit.given import given, named, refusal

KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="
SHORT_KEY = "whsec_aGVsbG8="
PASSWORD = "correct-horse"
NUMBERS = words("""
    LEASE_SECONDS HEARTBEAT_SECONDS SWEEP_SECONDS POLL_SECONDS SLICE_SECONDS
    PATIENCE_SECONDS EVENT_ATTEMPTS EVENT_TIMEOUT BACKOFF_SECONDS BACKOFF_CAP_SECONDS
    TRANSITIONS_LIMIT
""")
NO_NUMBERS = [*words("-1 nan inf -inf soon 1e300 3;4"), " ", "9" * 5_000]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "PROCESSION_WEBHOOK_SECRET_EXCHANGE"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_has_to_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCESSION_DATA_DIR")
    monkeypatch.delenv("PROCESSION_DEMO")

    assert given().model_dump() == Variables.model_construct().model_dump()
    assert given().engine == {}


def test_an_empty_variable_is_as_if_it_were_not_set() -> None:
    found = given(LEASE_SECONDS="", HTTPS="", QUEUES="", WEBHOOK_SECRET_BANK="")

    assert (found.engine, found.HTTPS, found.QUEUES) == ({}, False, [])
    assert found.WEBHOOK_SECRET == {}


def test_the_engine_s_settings_are_those_that_are_set() -> None:
    found = given(LEASE_SECONDS="7.5", EVENT_ATTEMPTS="3")

    assert found.engine == {"LEASE_SECONDS": 7.5, "EVENT_ATTEMPTS": 3}


@cases("name, value", *((name, value) for name in NUMBERS for value in NO_NUMBERS))
def test_what_is_no_such_number_is_refused(name: str, value: str) -> None:
    line = refusal(**{name: value})

    assert line.startswith(f"PROCESSION_{name} must be a ")
    assert " number from " in line
    assert len(line) < 120


PREFIXES = words("procession / /procession/ //procession /a/../b /a?b /a%20b")
PREFIX = "look like /procession, of letters, digits and _ . ~ -, without / at its end"
A_ZONE, HOSTS = "be a time zone such as Asia/Tokyo,", "list host names, without scheme"
SOME_NAMES = "list names of up to 50 letters, digits, ., - and _"
NETWORKS = "list addresses and networks such as"
BOUNDS = [
    *(("LEASE_SECONDS", "1 to 86,400"), ("HEARTBEAT_SECONDS", "0.05 to 43,200")),
    *(("SWEEP_SECONDS", "0.05 to 3,600"), ("POLL_SECONDS", "0.01 to 60")),
    *(("SLICE_SECONDS", "0.01 to 3,600"), ("EVENT_TIMEOUT", "0.1 to 86,400")),
]


@cases(
    "name, value, must",
    ("EVENT_ATTEMPTS", "0.5", "be a whole number from 1 to 1,000, not '0.5'."),
    ("EVENT_ATTEMPTS", "0", "be a whole number from 1 to 1,000, not '0'."),
    ("TRANSITIONS_LIMIT", "0", "be a whole number from 1 to 1,000,000,000,"),
    *((name, "0", f"be a number from {bounds}, not '0'.") for name, bounds in BOUNDS),
    ("DEBUG", "perhaps", "be 1 or 0, not 'perhaps'."),
    ("HTTPS", "2", "be 1 or 0, not '2'."),
    ("LOG_LEVEL", "loud", "be debug, info, warning, error or critical,"),
    *(("TIME_ZONE", zone, A_ZONE) for zone in ("Mars/Base", "Asia", "/etc/hosts")),
    ("APPS", "tests,no_such_app", "list apps that can be imported, not 'no_such"),
    ("APPS", ",", "list apps that can be imported, not ','"),
    *(("QUEUES", names, SOME_NAMES) for names in ("my,e mail", "q" * 51)),
    *(("ALLOWED_HOSTS", host, HOSTS) for host in ("https://a.org", "a.org:8000")),
    *(("PATH_PREFIX", path, PREFIX) for path in PREFIXES),
    ("TRUSTED_ORIGINS", "example.org", "list origins such as https://"),
    ("TRUSTED_ORIGINS", "https://example.org/path", "list origins such as"),
    *(("TRUSTED_PROXIES", one, NETWORKS) for one in ("everywhere", "192.0.2.1/24")),
    *(("WEBHOOK_NETWORKS_BANK", networks, NETWORKS) for networks in "*,"),
    ("WEBHOOK_SECRET_BANK", ",", "be whsec_ and the base64 of 24 bytes"),
    ("WEBHOOK_SECRET", KEY, "have _ and another name after its own."),
)
def test_it_is_said_what_a_variable_must_be(name: str, value: str, must: str) -> None:
    assert refusal(**{name: value}).startswith(f"PROCESSION_{name} must {must}")


@cases("value", *words("many 0 -1 5,0 5,2.5 5,6,7 inf nan 1e7 5,9999999"))
def test_what_is_no_rate_is_refused(value: str) -> None:
    line = refusal(WEBHOOK_RATE_BANK=value)

    assert line.startswith("PROCESSION_WEBHOOK_RATE_BANK must be like 5 or 5,20")


HALF = "PROCESSION_HEARTBEAT_SECONDS must be at most half of PROCESSION_LEASE_SECONDS"
CAP = "PROCESSION_BACKOFF_CAP_SECONDS must be at least PROCESSION_BACKOFF_SECONDS"


@cases(
    "variables, line",
    ({"HEARTBEAT_SECONDS": "6"}, f"{HALF}, which is 10, not '6'."),
    ({"LEASE_SECONDS": "4"}, f"{HALF}, which is 4, not 3."),
    (
        {"BACKOFF_SECONDS": "10", "BACKOFF_CAP_SECONDS": "5"},
        f"{CAP}, which is 10, not '5'.",
    ),
    ({"BACKOFF_SECONDS": "1000"}, f"{CAP}, which is 1,000, not 300."),
)
def test_contradictions_are_refused(variables: dict[str, str], line: str) -> None:
    assert refusal(**variables) == line


@cases("name, value", ("NETWORKS_BNAK", "192.0.2.1"), ("RATE_BNAK", "5"))
def test_a_limit_of_no_source_is_refused(name: str, value: str) -> None:
    line = refusal(WEBHOOK_SECRET_BANK=KEY, **{f"WEBHOOK_{name}": value})

    assert line == (
        f"PROCESSION_WEBHOOK_{name} is of a source that does not exist; "
        "PROCESSION_WEBHOOK_SECRET_BNAK makes it."
    )


@cases(
    "name, value",
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
    ("SECRET_KEY", PASSWORD),
    ("WEBHOOK_SECRET_BANK", SHORT_KEY),
    ("WEBHOOK_SECRET_BANK", KEY.removeprefix("whsec_")),
    ("WEBHOOK_SECRET_BANK", f"{KEY},{KEY[:-5]}"),
    ("WEBHOOK_SECRET_BANK", f"{KEY},{KEY},{KEY}"),
)
def test_a_secret_that_is_refused_is_not_repeated(name: str, value: str) -> None:
    line = refusal(**{name: value})

    assert line.startswith(f"{named(name)} must ")
    assert not any(part in line for part in (PASSWORD, SHORT_KEY[6:], KEY[6:30]))


@cases(
    "name, url",
    ("DATABASE_URL", "postgresql://me:p%40ss@db.example:5433/orders?sslmode=require"),
    ("DATABASE_URL", "postgres:///orders"),
    ("DATABASE_URL", "postgresql://?service=orders"),
    ("DATABASE_URL", "sqlite:///folder/file"),
    ("DATABASE_URL", "sqlite:////folder/file"),
    ("REDIS_URL", "redis://:secret@valkey:6379/1"),
    ("REDIS_URL", "rediss://valkey"),
    ("REDIS_URL", "unix:///run/v.sock"),
)
def test_an_address_of_a_database_or_a_valkey_is_taken(name: str, url: str) -> None:
    assert getattr(given(**{name: url}), name) == url


@cases("text, on", ("1", True), ("Yes", True), ("0", False))
def test_a_switch_is_on_or_off(text: str, on: bool) -> None:
    assert given(HTTPS=text).HTTPS is on


@cases(
    "name, text, found",
    ("QUEUES", "default, mail,", ["default", "mail"]),
    ("ALLOWED_HOSTS", "*,.example.org,[::1]", ["*", ".example.org", "[::1]"]),
    (
        "TRUSTED_ORIGINS",
        "https://*.example.org,http://[::1]:8000",
        ["https://*.example.org", "http://[::1]:8000"],
    ),
    (
        "APPS",
        "tests.apps.process_managers,examples",
        ["tests.apps.process_managers", "examples"],
    ),
)
def test_lists_are_words_between_commas(name: str, text: str, found: list[str]) -> None:
    assert getattr(given(**{name: text}), name) == found


def test_a_source_s_secrets_and_limits_are_found_by_its_name() -> None:
    found = given(
        WEBHOOK_SECRET_MY_BANK=f"{KEY}, {KEY}",
        WEBHOOK_SECRET_X=KEY,
        WEBHOOK_NETWORKS_MY_BANK="192.0.2.1, 2001:db8::/32",
        WEBHOOK_RATE_MY_BANK="2.5",
        WEBHOOK_RATE_X="5, 20",
    )

    assert found.WEBHOOK_SECRET == {"my_bank": [KEY, KEY], "x": [KEY]}
    networks = [str(network) for network in found.WEBHOOK_NETWORKS["my_bank"]]
    assert networks == ["192.0.2.1/32", "2001:db8::/32"]
    assert found.WEBHOOK_RATE == {"my_bank": (2.5, 3), "x": (5, 20)}
