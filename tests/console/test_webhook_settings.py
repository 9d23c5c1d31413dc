"""What a project of its own says of webhooks, its address and its metrics: each mistake is told, and lets in nobody."""

import json
import logging
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.http import HttpResponse
from django.utils.functional import SimpleLazyObject, lazystr
from pytest_django import Settings

from orchestrator.configuration.conf import log_once
from orchestrator.configuration.site_settings import metrics_token, site_url
from orchestrator.configuration.webhook_settings import find_source
from orchestrator.models import InboxEvent
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.exchange import headers

pytestmark = pytest.mark.django_db

KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="
WEAK = "whsec_QQ=="  # one byte
UNPREFIXED = KEY.removeprefix("whsec_")
TOKEN = "a-token-for-metrics-that-is-long-enough"
FACTS = {"order_id": "EX-1", "external_id": "EX-1", "description": "10 MWh"}
BODY = json.dumps({"type": "ExternalOrderCreated", "data": FACTS}).encode()
SOURCES, NETWORKS, RATES = "WEBHOOK_SOURCES", "WEBHOOK_NETWORKS", "WEBHOOK_RATES"

BASE64 = "must be whsec_ and the base64 of 24 bytes or more"
LISTED = "must be a list of one signing key, or of two while one replaces the other"
ADDRESS = "must be an address or a network such as 192.0.2.1 or 192.0.2.0/24"
OFTEN = "must be a number from 0.0001 to 1,000,000: events a second"
BURST = "must be a whole number from 1 to 1,000,000: events at once"
PAIR = "must be a pair of numbers"

REFUSED: list[tuple[str, Any, str]] = [
    (SOURCES, None, "must be a dictionary with an entry for each source, not None."),
    (SOURCES, [KEY], "must be a dictionary with an entry for each source, not a list."),
    (SOURCES, {"bank": KEY}, f"['bank'] {LISTED}, not a str."),
    (SOURCES, {"bank": [KEY] * 3}, f"['bank'] {LISTED}, not 3."),
    (SOURCES, {"bank": {KEY: 1}}, f"['bank'] {LISTED}, not a dict."),
    (SOURCES, {"bank": [WEAK]}, f"['bank'][0] {BASE64}."),
    (SOURCES, {"bank": [KEY, WEAK]}, f"['bank'][1] {BASE64}."),
    (SOURCES, {"bank": [UNPREFIXED]}, f"['bank'][0] {BASE64}."),
    (SOURCES, {"bank": ["whsec_ü"]}, f"['bank'][0] {BASE64}."),
    (SOURCES, {"bank": [""]}, f"['bank'][0] {BASE64}."),
    (SOURCES, {"bank": [None]}, f"['bank'][0] {BASE64}, not None."),
    (SOURCES, {"bank": [KEY.encode()]}, f"['bank'][0] {BASE64}, not a bytes."),
    (NETWORKS, None, "must be a dictionary with an entry for each source, not None."),
    (NETWORKS, {"bank": ["zzz"]}, f"['bank'][0] {ADDRESS}, not 'zzz'."),
    (NETWORKS, {"bank": ["192.0.2.1/24"]}, f"['bank'][0] {ADDRESS}, not '192"),
    (NETWORKS, {"bank": ["127.0.0.1", 7]}, f"['bank'][1] {ADDRESS}, not 7."),
    (NETWORKS, {"bank": [KEY]}, f"['bank'][0] {ADDRESS}, not …."),
    (NETWORKS, {"bank": "127.0.0.1"}, "['bank'] must be a list of addresses and"),
    (NETWORKS, {"bank": []}, "one or more, not 0."),
    (NETWORKS, {"bank": None}, "one or more, not None."),
    (RATES, ["bank"], "must be a dictionary with an entry for each source, not a list"),
    (RATES, {"bank": "x"}, f"['bank'] {PAIR}"),
    (RATES, {"bank": 5}, f"['bank'] {PAIR}"),
    (RATES, {"bank": None}, f"['bank'] {PAIR}"),
    (RATES, {"bank": (5,)}, f"['bank'] {PAIR}"),
    (RATES, {"bank": ("x", 5)}, f"['bank'][0] {OFTEN}, not 'x'."),
    (RATES, {"bank": (0, 5)}, f"['bank'][0] {OFTEN}, not 0."),
    (RATES, {"bank": (-1, 5)}, f"['bank'][0] {OFTEN}, not -1."),
    (RATES, {"bank": (True, 5)}, f"['bank'][0] {OFTEN}, not True."),
    (RATES, {"bank": (float("nan"), 5)}, f"['bank'][0] {OFTEN}, not nan."),
    (RATES, {"bank": (5, 0)}, f"['bank'][1] {BURST}, not 0."),
    (RATES, {"bank": (5, 2.5)}, f"['bank'][1] {BURST}, not 2.5."),
    (RATES, {"bank": (5, True)}, f"['bank'][1] {BURST}, not True."),
    (RATES, {"bank": (SimpleLazyObject(lambda: 5), 5)}, f"['bank'][0] {OFTEN}, not <"),
]
TOLD: list[tuple[str, Any, str]] = [
    *REFUSED,
    (SOURCES, {"bank": []}, f"['bank'] {LISTED}, not 0."),
    (SOURCES, {"bank": None}, f"['bank'] {LISTED}, not None."),
    (SOURCES, {"bank": [KEY], "a/b": [KEY]}, "['a/b'] must have the name of a source"),
    (SOURCES, {"bank": [KEY], KEY: ["bank"]}, "[…] must have the name of a source"),
    (NETWORKS, {"bnak": ["192.0.2.1"]}, "settings.WEBHOOK_SOURCES['bnak'] makes it."),
    (RATES, {"bnak": (5, 20)}, "['bnak'] is of a source that does not exist"),
]


@pytest.fixture(autouse=True)
def one_source(settings: Settings) -> None:
    settings.WEBHOOK_SOURCES = {"bank": [KEY]}
    settings.WEBHOOK_NETWORKS, settings.WEBHOOK_RATES = {}, {}
    log_once.cache_clear()


def sent(key: str = KEY) -> HttpResponse:
    signed = headers(BODY, key=key) | {"Content-Type": "application/json"}
    return Client().generic("POST", "/hooks/bank/", BODY, headers=signed)  # type: ignore[return-value]


def told() -> list[CheckMessage]:
    return run_checks(tags=["orchestrator"])


# Webhooks


@cases("setting, given, line", *TOLD)
def test_each_mistake_is_told_with_its_place_and_what_to_write(
    setting: str, given: Any, line: str, settings: Settings
) -> None:
    setattr(settings, setting, given)

    found = told()

    assert {one.id for one in found} == {"orchestrator.E013"}
    assert any(line in one.msg for one in found)
    for one in found:
        assert one.msg.startswith(f"settings.{setting}")
        assert len(one.msg.splitlines()) == 1
        assert setting in str(one.hint) or SOURCES in str(one.hint)
        assert UNPREFIXED not in f"{one.msg} {one.hint}"
        assert "QQ==" not in one.msg


@cases("setting, given, line", *REFUSED)
def test_a_source_whose_settings_are_wrong_takes_nothing_and_says_to_come_again(
    setting: str, given: Any, line: str, settings: Settings
) -> None:
    setattr(settings, setting, given)

    answer = sent()

    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    detail = "this site is set up wrongly; send it again later, with the same id"
    said = {"error": "misconfigured", "detail": detail}
    assert json.loads(answer.content) == said
    assert not InboxEvent.objects.exists()


def test_the_log_names_the_setting_once_and_no_key(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.WEBHOOK_SOURCES = {"bank": [KEY, WEAK]}

    with caplog.at_level(logging.ERROR):
        answers = [sent(WEAK).status_code for _ in range(2)]  # nor is it good for any

    assert answers == [503, 503]
    assert caplog.messages == [f"settings.WEBHOOK_SOURCES['bank'][1] {BASE64}."]


def test_another_source_goes_on(settings: Settings) -> None:
    settings.WEBHOOK_SOURCES = {"bank": [KEY], "exchange": [WEAK]}
    settings.WEBHOOK_NETWORKS = {"exchange": ["zzz"]}

    assert sent().status_code == 202


@cases("written", str, ip_network)
def test_a_network_is_text_or_what_python_has(written: Any, settings: Settings) -> None:
    settings.WEBHOOK_NETWORKS = {"bank": [written("192.0.2.0/24")]}
    assert (told(), sent().status_code) == ([], 403)

    settings.WEBHOOK_NETWORKS = {"bank": (written("127.0.0.0/8"),)}
    assert (told(), sent().status_code) == ([], 202)


def test_settings_that_say_nothing_of_webhooks_are_in_order(settings: Settings) -> None:
    for setting in (SOURCES, NETWORKS, RATES):
        delattr(settings, setting)

    assert (told(), sent().status_code) == ([], 404)


# The site's address, and the token of its metrics


def assert_told(setting: str, must: str) -> None:
    """That setting is told of, and nothing else."""
    [error] = told()
    said = f"settings.{setting} must {must}"
    assert (error.id, error.msg) == ("orchestrator.E014", said)
    assert f"{setting} = " in str(error.hint)


@cases(
    "given",
    *(5, False, ["https://example.org"], "https://example.org/\r\nX: y"),
    *("example.org", "ftp://example.org"),
    *("https://me:T0PSECRET@", "https://example.org:T0PSECRET"),
)
def test_what_is_no_address_makes_no_links(given: Any, settings: Settings) -> None:
    settings.PROCESSION_SITE_URL = given

    assert_told("PROCESSION_SITE_URL", "look like https://host:8000/path.")
    assert site_url() == ""


@cases("given", True, 5, TOKEN.encode(), [TOKEN], "T0P", "ü" * 40)
def test_a_token_that_cannot_be_used_is_told_and_shows_nobody_the_metrics(
    given: Any, settings: Settings, client: Client
) -> None:
    settings.PROCESSION_METRICS_TOKEN = given

    must = "have 32 to 255 letters, digits and . _ ~ + / = -."
    assert_told("PROCESSION_METRICS_TOKEN", must)
    bearer = {"Authorization": f"Bearer {given}"}
    client.read("/metrics", headers=bearer, status=401)


@cases("given", "", None)
def test_neither_need_be_said_and_a_router_may_leave_the_engine_alone(
    given: Any, settings: Settings
) -> None:
    settings.PROCESSION_SITE_URL = settings.PROCESSION_METRICS_TOKEN = given
    settings.DATABASE_ROUTERS = [Elsewhere(read="default")]

    assert told() == []


# Models of the engine in another database


class Elsewhere:
    """Sends what is read, or written, of the engine's to another database."""

    def __init__(self, *, read: str | None = None, write: str | None = None) -> None:
        self.read, self.write = read, write

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return self.read if model is InboxEvent else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return self.write if model is InboxEvent else None


@cases("router", Elsewhere(read="events"), Elsewhere(write="events"))
def test_a_model_of_the_engine_in_another_database_is_an_error(
    router: Elsewhere, settings: Settings
) -> None:
    settings.DATABASE_ROUTERS = [router]

    [error] = told()

    assert error.id == "orchestrator.E015"
    said = "DATABASE_ROUTERS send InboxEvent to the database 'events': the engine works"
    assert error.msg == f"{said} in the default one alone."


# Lazy texts, as from a store of secrets


@cases("lazy", lazystr, lambda text: SimpleLazyObject(lambda: text))
def test_a_text_may_be_made_when_it_is_asked_for(lazy: Any, settings: Settings) -> None:
    settings.WEBHOOK_SOURCES = {"bank": [lazy(KEY)]}
    settings.WEBHOOK_NETWORKS = {"bank": [lazy("127.0.0.0/8")]}
    settings.PROCESSION_SITE_URL = lazy("https://procession.example.org/")
    settings.PROCESSION_METRICS_TOKEN = lazy(TOKEN)

    assert (site_url(), metrics_token()) == ("https://procession.example.org", TOKEN)
    assert find_source("bank") == ([KEY], [ip_network("127.0.0.0/8")], None)
    assert sent().status_code == 202
    assert not {"orchestrator.E013", "orchestrator.E014"} & {one.id for one in told()}
