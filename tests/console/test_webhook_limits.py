"""Where webhooks may come from and how many, asked of the real web server."""

import json
from collections.abc import Iterator, Mapping
from email.message import Message
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from orchestrator.models import InboxEvent
from tests.services.exchange import headers
from tests.services.site import Site
from tests.services.valkey import ValkeyServer

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "whsec_YSBrZXkgZm9yIHRoZSBsaW1pdHMsIGFuZCBub3RoaW5nIGVsc2U="
FACTS = {"order_id": "EX-1", "external_id": "EX-1", "description": "10 MWh"}
BODY = json.dumps({"type": "ExternalOrderCreated", "data": FACTS}).encode()
SOURCES = ("HERE", "ELSEWHERE", "SLOW", "QUICK")
LIMITS = {
    **{f"PROCESSION_WEBHOOK_SECRET_{source}": KEY for source in SOURCES},
    "PROCESSION_WEBHOOK_NETWORKS_HERE": "192.0.2.1,127.0.0.0/8",
    "PROCESSION_WEBHOOK_NETWORKS_ELSEWHERE": "192.0.2.0/24,2001:db8::/32",
    "PROCESSION_WEBHOOK_RATE_SLOW": "0.001,3",
    "PROCESSION_WEBHOOK_RATE_QUICK": "1000",
}
NOTHING_MORE: Mapping[str, str] = {}
Answer = tuple[int, dict[str, str], Message]


def served(limits: Mapping[str, str]) -> Iterator[Site]:
    """Serve the test database under these limits."""
    site = Site()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setenv(name, value)
        site.start()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def site(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[Site]:
    """Serve without any proxy."""
    yield from served(LIMITS)


@pytest.fixture(scope="module")
def behind_proxy(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[Site]:
    """Serve behind a proxy on this host, and others at 198.51.100.0/24."""
    proxies = {"PROCESSION_TRUSTED_PROXIES": "127.0.0.1,198.51.100.0/24"}
    yield from served(LIMITS | proxies)


def post(
    site: Site,
    source: str,
    number: int = 1,
    more: Mapping[str, str] = NOTHING_MORE,
    body: bytes = BODY,
) -> Answer:
    """Post a signed event as that source; return status, body and headers of the answer."""
    signed = headers(body, id=f"msg_{number}", key=KEY)
    sent = {"Content-Type": "application/json", **signed, **more}
    request = Request(f"{site.url}/hooks/{source}/", body, sent)  # noqa: S310  the test's own
    try:
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read()), answer.headers
    except HTTPError as refusal:
        with refusal:
            return refusal.code, json.loads(refusal.read()), refusal.headers


def posted(site: Site, source: str, times: int) -> list[int]:
    """Post so many events; the statuses of the answers."""
    return [post(site, source, number)[0] for number in range(times)]


def forwarded(site: Site, source: str, *addresses: str) -> int:
    """Post an event that is said to have come by these addresses; the status of the answer."""
    return post(site, source, more={"X-Forwarded-For": ", ".join(addresses)})[0]


# From where


def test_a_source_sends_from_its_networks_or_nothing_is_stored(site: Site) -> None:
    status, body, _ = post(site, "elsewhere")

    assert (status, body["error"]) == (403, "forbidden_address")
    assert "127.0.0.1" in body["detail"]
    assert not InboxEvent.objects.exists()
    assert post(site, "here")[0] == 202


def test_a_header_that_no_trusted_proxy_has_set_counts_for_nothing(site: Site) -> None:
    assert forwarded(site, "elsewhere", "192.0.2.7") == 403
    assert forwarded(site, "here", "203.0.113.9") == 202


@pytest.mark.parametrize(
    ("source", "addresses", "status"),
    [
        ("elsewhere", "192.0.2.7", 202),
        ("elsewhere", "2001:db8::7", 202),
        ("elsewhere", "203.0.113.9", 403),
        ("here", "203.0.113.9", 403),
        ("elsewhere", "192.0.2.7 198.51.100.3", 202),
        ("elsewhere", "192.0.2.7 203.0.113.9", 403),  # made up
        ("elsewhere", "nobody", 403),
    ],
)
def test_trusted_proxies_and_no_others_say_where_a_request_comes_from(
    source: str, addresses: str, status: int, behind_proxy: Site
) -> None:
    assert forwarded(behind_proxy, source, *addresses.split()) == status


# How many


def test_what_is_too_much_is_refused_and_not_stored(site: Site) -> None:
    answers = [post(site, "slow", number) for number in range(5)]

    assert [status for status, _, _ in answers] == [202, 202, 202, 429, 429]
    _, body, sent = answers[-1]
    assert body["error"] == "too_many"
    assert 900 < int(sent["Retry-After"]) <= 1000
    assert InboxEvent.objects.count() == 3


def test_each_event_of_a_list_counts(site: Site) -> None:
    answers = [
        post(site, "slow", number, body=listed(number, size))
        for number, size in enumerate((4, 2, 2, 1))
    ]

    assert [status for status, _, _ in answers] == [413, 202, 429, 202]
    assert "3 events at once" in answers[0][1]["detail"]
    assert InboxEvent.objects.count() == 3


def listed(number: int, size: int) -> bytes:
    """A list of so many events, whose ids begin with a number."""
    one = json.loads(BODY)
    events = [{**one, "id": f"{number}-{place}"} for place in range(size)]
    return json.dumps(events).encode()


def test_each_source_has_a_rate_of_its_own(site: Site) -> None:
    posted(site, "slow", 4)

    assert {*posted(site, "quick", 9), *posted(site, "here", 9)} == {202}


def test_what_is_not_signed_uses_nothing_up(site: Site) -> None:
    unsigned = {"webhook-signature": "v1,bm90aGluZw=="}
    assert {post(site, "slow", more=unsigned)[0] for _ in range(9)} == {401}

    assert post(site, "slow")[0] == 202


def test_there_is_room_after_the_time_said(site: Site, valkey: ValkeyServer) -> None:
    posted(site, "slow", 4)
    with valkey.client() as client:
        key = "procession:webhooks:slow"
        client.set(key, float(client.get(key) or 0) - 1000)  # so many seconds ago

    assert [post(site, "slow", number)[0] for number in (5, 6)] == [202, 429]


def test_without_valkey_nothing_is_refused(site: Site, valkey: ValkeyServer) -> None:
    valkey.stop()

    assert set(posted(site, "slow", 9)) == {202}
    assert InboxEvent.objects.count() == 9
