"""Walks through single sign-on, with a provider on loopback; `test_single_sign_on.py` runs them."""

import http.client
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import override_script_prefix
from pytest_django import Settings
from requests import Session
from requests.exceptions import ProxyError

from orchestrator.configuration.sign_in_settings import (
    SINGLE_SIGN_ON_BACKEND,
    provider_settings,
)
from orchestrator.sign_in import provider as asking
from orchestrator.sign_in import sign_in_path
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.openid_provider import (
    ABSENT,
    CLIENT_ID,
    CLIENT_SECRET,
    TRICKLE,
    Provider,
    serving,
)

pytestmark = pytest.mark.django_db

ANNA = {
    "sub": "248289761001",
    "preferred_username": "anna",
    "given_name": "Anna",
    "family_name": "Example",
    "email": "anna@example.org",
    "email_verified": True,
    "groups": ["ops-team", "unknown"],
}
CALLBACK = "/sign-in/with/callback/"


@pytest.fixture(scope="module")
def listening() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


def trust(provider: Provider, settings: Settings) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = provider_settings(
        provider.issuer, CLIENT_ID, CLIENT_SECRET, "Example ID"
    )


@pytest.fixture
def provider(
    listening: Provider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Provider:
    trust(listening, settings)
    monkeypatch.setattr(asking, "KEPT", -1)
    monkeypatch.setattr(asking, "_descriptions", {})
    listening.claims, listening.broken, listening.silent = dict(ANNA), {}, False
    return listening


@pytest.fixture(autouse=True)
def groups(db: None) -> dict[str, Group]:
    names = ("operators", "readers", "leaders", "night shift")
    found = {name: Group.objects.create(name=name) for name in names}
    may = Permission.objects.get(codename="view_processinstance")
    found["operators"].permissions.add(may)
    return found


def sent(client: Client, query: str = "") -> str:
    """Return where the browser is sent when the button is pressed."""
    answer = client.get(f"/sign-in/with/{query}")
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def agreed(address: str) -> str:
    """Return where the provider sends the browser, as a path of ours."""
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
    connection.request("GET", f"{parts.path}?{parts.query}")
    back = urlsplit(connection.getresponse().headers["Location"])
    connection.close()
    return f"{back.path}?{back.query}"


def came(client: Client, query: str = "") -> Any:
    """Walk to the provider and back; return the answer."""
    return client.get(agreed(sent(client, query)))


def user_of(client: Client) -> User | None:
    return User.objects.filter(pk=client.session.get("_auth_user_id", 0)).first()


def names_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def refused(client: Client, answer: Any, status: int = 403) -> str:
    """Return the page of a refusal, from which a person can sign in again."""
    page: str = answer.content.decode()
    assert answer.status_code == status, page
    assert 'href="/sign-in/"' in page
    assert "Traceback" not in page
    assert user_of(client) is None
    return page


def test_a_person_comes_in_with_the_groups_of_the_claims(
    provider: Provider, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = client.read("/sign-in/?next=/processes/")
    assert "Sign in with Example ID" in page
    assert "/sign-in/with/?next=/processes/" in page

    answer = came(client, "?next=/processes/")

    assert (answer.status_code, answer["Location"]) == (302, "/processes/")
    [user] = User.objects.all()
    assert user_of(client) == user
    assert (user.username, user.first_name, user.email) == (
        "anna",
        "Anna",
        "anna@example.org",
    )
    assert names_of(user) == {"operators", "readers"}
    assert (user.is_staff, user.is_superuser) == (False, False)
    assert not user.has_usable_password()
    assert client.session[BACKEND_SESSION_KEY] == SINGLE_SIGN_ON_BACKEND
    assert "anna" in client.read("/processes/")
    asked = provider.asked[-1]
    assert set(asked["scope"].split()) == {"openid", "profile", "email", "groups"}
    assert len(asked["nonce"]) == 32
    lines = [one for one in caplog.records if one.name == "orchestrator.security"]
    assert "single sign-on: 'anna' has signed in" in {one.getMessage() for one in lines}
    assert CLIENT_SECRET not in caplog.text
    assert "form-action 'self'" in answer.headers["Content-Security-Policy"]


def test_groups_follow_the_claims_and_those_given_here_stay(
    provider: Provider, client: Client, groups: dict[str, Group]
) -> None:
    came(client)
    user = User.objects.get()
    user.groups.add(groups["night shift"])

    provider.claims["groups"] = "leads"
    came(Client())
    assert names_of(user) == {"leaders", "night shift"}

    del provider.claims["groups"]
    provider.broken = {"userinfo": {"groups": ["ops-team", 7, None]}}
    came(Client())
    assert names_of(user) == {"operators", "readers", "night shift"}
    assert User.objects.count() == 1


@cases("claim", [], None, "*", "unknown", {"ops-team": True}, [["ops-team"]])
def test_who_has_no_group_here_is_told_what_to_ask(
    claim: Any, provider: Provider
) -> None:
    client, provider.claims = Client(), dict(ANNA)
    came(client)
    user = User.objects.get()
    provider.claims["groups"] = claim

    page = refused(fresh := Client(), came(fresh))

    assert "Ask an administrator to add you" in page
    assert names_of(user) == set()
    provider.claims |= {"sub": "another", "groups": claim}
    refused(fresh, came(fresh))
    assert User.objects.count() == 1


def test_a_star_lets_everybody_in_whom_the_provider_knows(
    provider: Provider, client: Client, settings: Settings
) -> None:
    settings.PROCESSION_SSO_GROUPS = {"*": ["readers"]}
    del provider.claims["groups"]

    came(client)

    assert names_of(User.objects.get()) == {"readers"}


def test_a_group_that_does_not_exist_is_told_in_the_log(
    provider: Provider,
    client: Client,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.PROCESSION_SSO_GROUPS = {"ops-team": ["operatorz"]}

    refused(client, came(client))

    assert "groups that do not exist: ['operatorz']" in caplog.text


def test_a_local_account_is_no_account_of_the_provider(
    provider: Provider, client: Client
) -> None:
    local = User.objects.create_superuser("Anna", "anna@example.org", "x" * 20)

    came(client)

    user = user_of(client)
    assert user is not None
    assert (user.username, user.is_superuser) == ("anna2", False)
    assert names_of(local) == set()


def test_an_address_that_is_not_verified_is_not_kept(
    provider: Provider, client: Client
) -> None:
    provider.claims |= {"email_verified": False, "preferred_username": "\u202e <b>"}

    came(client)

    assert User.objects.values_list("username", "email").get() == ("b", "")


def test_the_same_subject_of_another_issuer_is_another_person(
    provider: Provider, client: Client, settings: Settings
) -> None:
    came(client)
    with serving() as other:
        trust(other, settings)
        other.claims = dict(ANNA)
        came(Client())

    assert User.objects.count() == 2
    accounts = set(SocialAccount.objects.values_list("provider", "uid"))
    subject = ANNA["sub"]
    assert accounts == {(provider.issuer, subject), (other.issuer, subject)}


def test_who_was_deactivated_is_refused(provider: Provider, client: Client) -> None:
    came(client)
    User.objects.update(is_active=False)

    page = refused(fresh := Client(), came(fresh))

    assert "switched off" in page
    assert client.get("/processes/").status_code == 302


ELSEWHERE = "http://192.0.2.1/token"


@cases(
    "broken",
    {"error": "access_denied"},
    {"error": "invalid_scope"},
    {"id_token": {"aud": "another client"}},
    {"id_token": {"exp": 1_000_000_000}},
    {"id_token": {"iss": "https://elsewhere.example.org"}},
    {"id_token": {"nonce": "of another sign-in"}},
    {"id_token": {"sub": "somebody else"}},
    {"id_token": {"sub": "s" * 192}},
    {"id_token": {"sub": ""}},
    {"id_token": {"name": "a\0b"}},
    {"id_token": {"exp": ABSENT}},
    {"id_token": {"exp": float("inf")}},
    {"id_token": {"nbf": 4_000_000_000}},
    {"id_token": {"aud": [CLIENT_ID, "another client"]}},
    {"id_token": {"aud": [CLIENT_ID, "another"], "azp": "another"}},
    {"signed": (None, "none")},
    {"id_token": {"given_name": "\ud800"}},
    {"userinfo": {"given_name": "\ud800"}},
    {"userinfo": {"groups": ["ops-team", "\ud800"]}},
    {"userinfo": {"x": float("nan")}},
    {"userinfo": {"x": float("-inf")}},
    {"tokens": {"expires_in": float("inf")}},
    {"tokens": {"access_token": ABSENT}},
    {"tokens": {"access_token": None}},
    {"tokens": {"access_token": "a\r\nb"}},
    {"tokens": {"id_token": None}},
    {"status": 401},
    {"userinfo": {"sub": "somebody else"}},
    {"discovery": {"token_endpoint": "http://127.0.0.1:9/token"}},
    {"discovery": {"userinfo_endpoint": "http://127.0.0.1:1/gone"}},
)
def test_what_is_wrong_is_a_page_and_no_way_in(
    broken: dict[str, Any], provider: Provider
) -> None:
    client = Client()
    provider.broken = broken

    answer = came(client)

    refused(client, answer, 503 if "discovery" in broken else 403)
    assert not User.objects.exists()
    provider.broken = {}
    assert came(client).status_code == 302
    assert user_of(client)


@cases(
    "discovery, status",
    ({"issuer": "https://elsewhere.example.org"}, 403),
    ({"issuer": None}, 403),
    ({"token_endpoint": ELSEWHERE}, 403),
    ({"authorization_endpoint": 5}, 403),
    ({"scopes_supported": 7}, 403),
)
def test_a_provider_that_describes_itself_wrongly_is_not_asked(
    discovery: dict[str, Any], status: int, provider: Provider
) -> None:
    provider.broken = {"discovery": discovery}
    client = Client()

    refused(client, client.get("/sign-in/with/"), status)


def test_a_provider_that_is_down_says_so(
    provider: Provider, client: Client, settings: Settings
) -> None:
    address = sent(client)
    back = agreed(address)
    provider.silent = True

    assert "does not answer" in refused(client, client.get("/sign-in/with/"), 503)
    refused(client, client.get(back), 503)
    with serving() as gone:
        trust(gone, settings)
    refused(client, client.get("/sign-in/with/"), 503)


@cases("name, value", ("WHOLE", -1), ("LARGEST", 10))
def test_an_answer_that_is_too_slow_or_too_long_is_cut_off(
    name: str,
    value: int,
    provider: Provider,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, name, value)

    assert "does not answer" in refused(client, client.get("/sign-in/with/"), 503)


@cases(
    "broken",
    {"error": "server_error"},
    {"error": "temporarily_unavailable"},
    {"status": 500},
    {"status": 429},
)
def test_a_provider_that_cannot_sign_in_now_does_not_answer(
    broken: dict[str, Any], provider: Provider
) -> None:
    client, provider.broken = Client(), broken

    assert "does not answer" in refused(client, came(client), 503)


@cases("raw", b"[" * 200_000, b'{"a":' * 100_000, b"5", b"\xff\xfe\0", b"1" * 9000)
def test_an_answer_that_is_no_plain_object_is_refused(
    raw: bytes, provider: Provider
) -> None:
    description = "/.well-known/openid-configuration"
    for path in (description, "/token", "/userinfo"):
        client, provider.broken = Client(), {}
        back = agreed(sent(client))
        provider.broken = {"raw": {path: raw}}

        refused(client, client.get(back))


@cases("seconds", 10**15, -(10**15), "soon", None)
def test_when_an_access_token_ends_does_not_matter(
    seconds: Any, provider: Provider
) -> None:
    client, provider.broken = Client(), {"tokens": {"expires_in": seconds}}

    assert came(client).status_code == 302


@cases("id", "j" * 5000, {"a": 1})
def test_the_id_of_a_token_is_not_kept(id: Any, provider: Provider) -> None:
    client, provider.broken = Client(), {"id_token": {"jti": id}}

    assert came(client).status_code == 302


def test_headers_that_trickle_in_are_cut_off(
    provider: Provider, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WHOLE", 0.2)
    provider.trickles, provider.trickled = True, 0
    try:
        assert "does not answer" in refused(client, client.get("/sign-in/with/"), 503)
        assert provider.trickled < TRICKLE
    finally:
        provider.trickles = False


def test_the_description_is_kept_once_it_is_right(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "KEPT", 300)
    provider.broken = {"discovery": {"scopes_supported": 7}}
    refused(wrong := Client(), wrong.get("/sign-in/with/"))
    provider.broken, provider.paths = {}, []

    for _ in range(3):
        sent(Client())
    came(client := Client())

    assert user_of(client)
    assert provider.paths.count("/.well-known/openid-configuration") == 1


def test_few_requests_wait_for_the_provider_and_the_others_are_told_at_once(
    provider: Provider, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT", 60)
    monkeypatch.setattr(asking, "WHOLE", 60)
    keys, number = f"{provider.issuer}/keys", asking.AT_ONCE
    with ThreadPoolExecutor(number) as threads:
        waiting = [
            threads.submit(lambda: asking.ProviderSession().get(keys).status_code)
            for _ in range(number)
        ]
        try:
            for _ in waiting:
                provider.waiting.acquire(timeout=60)
            answer = client.get("/sign-in/with/")
        finally:
            provider.held.set()

    assert "does not answer" in refused(client, answer, 503)
    assert [one.result() for one in waiting] == [200] * number
    assert sent(client)


@pytest.mark.django_db(transaction=True)
def test_no_request_waits_with_a_connection_to_the_database(
    provider: Provider, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def telling(word: str, call: Any) -> Any:
        def tell(*args: Any, **more: Any) -> Any:
            told.append(word)
            return call(*args, **more)

        return tell

    monkeypatch.setattr(connection, "close", telling("closed", connection.close))
    monkeypatch.setattr(Session, "request", telling("asked", Session.request))

    came(client)

    asked = [at for at, one in enumerate(told) if one == "asked"]
    assert len(asked) == 4
    assert {told[at - 1] for at in asked} == {"closed"}


def test_the_environment_names_no_proxy_for_this_machine_and_no_password(
    provider: Provider,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ours.pem")

    assert came(client).status_code == 302

    assert provider.authorizations[-1] == "Bearer t"
    assert asking.ProviderSession().verify == "/etc/ours.pem"
    with pytest.raises(ProxyError):
        asking.ProviderSession().get("http://192.0.2.1/")


def test_no_token_is_in_the_log(
    provider: Provider, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.broken = {"tokens": {"access_token": ABSENT, "refresh_token": "hidden"}}

    refused(client, came(client))

    assert "access_token" in caplog.text
    assert "hidden" not in caplog.text
    assert "eyJ" not in caplog.text


def test_nothing_but_the_subject_is_stored(provider: Provider, client: Client) -> None:
    came(client)
    stored = SocialAccount.objects.values_list("extra_data", flat=True)
    assert stored.get() == {"sub": ANNA["sub"]}

    provider.broken = {"id_token": {"nonce": "x", "marker": "of a refused token"}}
    refused(fresh := Client(), came(fresh))

    assert "marker" not in json.dumps(stored.get())


@cases("length, kept", (150, True), (151, True), (254, True), (255, False))
def test_no_address_is_cut_into_another_one(
    length: int, kept: bool, provider: Provider
) -> None:
    address = (
        f"anna@{'b.' * 120}"[: length - 4].rstrip(".").ljust(length - 4, "b") + ".org"
    )
    provider.claims["email"] = address

    came(Client())

    assert len(address) == length
    assert User.objects.get().email == (address if kept else "")


def test_names_are_without_characters_that_disguise_them(
    provider: Provider, client: Client
) -> None:
    provider.claims |= {"given_name": "\u202eA\nb\u2066", "family_name": "\x1b\x9f"}

    came(client)

    user = User.objects.get()
    assert (user.first_name, user.last_name) == ("A b", "")


def test_only_get_comes_back(provider: Provider, client: Client) -> None:
    back = agreed(sent(client))

    assert client.head(back).status_code == 405
    assert client.post(back).status_code == 405
    assert user_of(client) is None
    assert client.get(back).status_code == 302


def test_a_state_and_a_code_count_once(provider: Provider) -> None:
    client, thief = Client(), Client()
    back = agreed(sent(client))

    refused(thief, thief.get(back))  # another browser
    refused(thief, thief.get(CALLBACK))
    refused(thief, thief.get(f"{CALLBACK}?state=x&code=y"))
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 403
    assert user_of(client)

    [code] = parse_qs(urlsplit(back).query)["code"]
    [state] = parse_qs(urlsplit(agreed(sent(thief))).query)["state"]
    refused(thief, thief.get(CALLBACK, {"state": state, "code": code}))


@cases("address", "https://evil.example.org/", "//evil.example.org", "javascript:x")
def test_no_other_site_comes_next(address: str, provider: Provider) -> None:
    client = Client()
    answer = client.get(
        agreed(str(client.get("/sign-in/with/", {"next": address})["Location"]))
    )

    assert answer["Location"] == "/"


def test_where_there_is_no_form_a_link_still_signs_in(
    provider: Provider, client: Client, settings: Settings, viewer: User
) -> None:
    settings.PROCESSION_SSO_ONLY = True

    page = client.read("/sign-in/")

    assert "/sign-in/with/" in page
    assert "password" not in page
    assert (
        client.post("/sign-in/", {"username": "a", "password": "b"}).status_code == 405
    )
    client.get(sign_in_path(viewer))
    assert user_of(client) == viewer


def test_no_other_address_of_the_library_answers(client: Client) -> None:
    for path in (
        "accounts/login/",
        "accounts/signup/",
        "accounts/3rdparty/",
        "signup/",
    ):
        assert client.get(f"/{path}").status_code == 404


def test_the_provider_sends_people_back_under_the_prefix_by_https(
    provider: Provider, client: Client, settings: Settings
) -> None:
    settings.SESSION_COOKIE_NAME, settings.SESSION_COOKIE_SECURE = "__Host-s", True

    with override_script_prefix("/branch/"):
        answer = client.get("/sign-in/with/", secure=True)

    [address] = parse_qs(urlsplit(answer["Location"]).query)["redirect_uri"]
    assert address == "https://testserver/branch/sign-in/with/callback/"
    assert answer.cookies["__Host-s"]["secure"]
