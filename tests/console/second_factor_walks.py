"""Walks through the second factor; `test_single_sign_on.py` runs them."""

import re
import time
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from orchestrator.configuration.sign_in_settings import SECOND_FACTOR_BACKEND
from orchestrator.sign_in import sign_in_path
from orchestrator.sign_in.adapters import SIGNED_IN
from orchestrator.sign_in.backends import SecondFactorBackend
from tests.console import single_sign_on_walks as by_provider
from tests.services.client import Client
from tests.services.openid_provider import serving

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"
PAGE, OWN, CODES = (
    "/sign-in/second-factor/",
    "/second-factor/",
    "/second-factor/recovery-codes/",
)
NOW = 1_900_000_000


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a walk moves; codes are those of its time."""
    now = [float(NOW)]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


@pytest.fixture
def owner(administrator: User) -> User:
    administrator.set_password(PASSWORD)
    administrator.save()
    return administrator


@pytest.fixture
def required(settings: Settings) -> None:
    axes, _, *more = settings.AUTHENTICATION_BACKENDS
    settings.PROCESSION_SECOND_FACTOR = "required"
    settings.AUTHENTICATION_BACKENDS = [axes, SECOND_FACTOR_BACKEND, *more]


def with_password(client: Client, user: User) -> Any:
    form = {"username": user.username, "password": PASSWORD, "next": "/processes/"}
    return client.post("/sign-in/", form)


def code_at(secret: str, now: float) -> str:
    return str(format_hotp_value(hotp_value(secret, int(now) // 30)))


def shown_secret(page: str) -> str:
    [shown] = re.findall(r"<code>([A-Z2-7 ]+)</code>", page)
    return str(shown.replace(" ", ""))


def shown_codes(page: str) -> list[str]:
    return re.findall(r"<code>(\d{8})</code>", page)


def made(client: Client, clock: list[float]) -> tuple[str, list[str]]:
    """Make a second factor for the signed-in user; return its secret and the recovery codes."""
    secret = shown_secret(client.read(OWN))
    answer = client.post(OWN, {"code": code_at(secret, clock[0])})
    assert answer["Location"] == CODES
    return secret, shown_codes(client.read(CODES))


def is_in(client: Client) -> bool:
    return client.get("/processes/").status_code == 200


def test_a_second_factor_is_made_and_then_asked_for(
    owner: User, client: Client, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    assert with_password(client, owner)["Location"] == "/processes/"
    assert OWN in client.read("/processes/")
    page = client.read(OWN)
    secret = shown_secret(page)
    assert "data:image/svg+xml;base64," in page
    assert "style=" not in page
    assert page.count("<script") == 1  # the file that lets a form be sent once
    assert "This code is wrong" in client.post(OWN, {"code": "12345"}).content.decode()
    assert shown_secret(client.read(OWN)) == secret

    first = code_at(secret, clock[0])
    assert client.post(OWN, {"code": first})["Location"] == CODES
    assert len(shown_codes(client.read(CODES))) == 10
    assert client.get(CODES)["Location"] == OWN  # they are shown once

    client.post("/sign-out/")
    assert with_password(client, owner)["Location"] == PAGE
    assert not is_in(client)
    assert client.get(OWN).status_code == 302
    assert client.get("/api/processes/").status_code == 401
    assert "one of your recovery codes" in client.read(PAGE)
    assert "This code is wrong" in client.post(PAGE, {"code": first}).content.decode()
    clock[0] += 30
    second = code_at(secret, clock[0])
    assert client.post(PAGE, {"code": f"{second[:3]} {second[3:]}"})["Location"] == (
        "/processes/"
    )
    assert is_in(client)

    other = Client()
    with_password(other, owner)
    assert other.post(PAGE, {"code": second}).status_code == 200  # it was used
    assert not is_in(other)
    assert secret not in caplog.text


def test_a_link_needs_the_second_factor_too_and_a_recovery_code_counts_once(
    owner: User, client: Client, clock: list[float]
) -> None:
    with_password(client, owner)
    _, codes = made(client, clock)
    other, third = Client(), Client()

    owner.refresh_from_db()
    assert other.get(sign_in_path(owner))["Location"] == PAGE
    assert not is_in(other)
    assert other.post(PAGE, {"code": codes[3]})["Location"] == "/"
    assert is_in(other)

    with_password(third, owner)
    assert third.post(PAGE, {"code": codes[3]}).status_code == 200
    assert not is_in(third)
    assert third.post(PAGE, {"code": codes[4]}).status_code == 302
    assert "8 recovery codes" in third.read(OWN)


def test_wrong_codes_are_limited_as_wrong_passwords_are(
    owner: User, client: Client, clock: list[float]
) -> None:
    with_password(client, owner)
    secret, codes = made(client, clock)
    client.post("/sign-out/")
    with_password(client, owner)
    clock[0] += 30

    wrong = [client.post(PAGE, {"code": "1"}).status_code for _ in range(12)]

    assert wrong == [200] * 9 + [429] * 3
    assert client.post(PAGE, {"code": codes[0]}).status_code == 429
    assert client.post(PAGE, {"code": code_at(secret, clock[0])}).status_code == 429
    assert not is_in(client)


def test_nothing_but_a_code_is_taken_from_a_person_who_is_signing_in(
    owner: User, client: Client, clock: list[float]
) -> None:
    assert client.get(PAGE)["Location"] == "/sign-in/"
    assert client.post(PAGE, {"code": "1"})["Location"] == "/sign-in/"
    with_password(client, owner)
    made(client, clock)
    client.post("/sign-out/")
    with_password(client, owner)

    for code in ("", "\0", "é" * 50, "9" * 5_000):
        assert client.post(PAGE, {"code": code}).status_code == 200
    assert client.post(PAGE).status_code == 200
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert client.get(PAGE)["Location"] == "/sign-in/"
    User.objects.filter(pk=owner.pk).update(is_active=True)
    clock[0] += 3_600
    assert client.get(PAGE)["Location"] == "/sign-in/"


def test_a_code_renews_and_removes_it(
    owner: User, client: Client, clock: list[float], settings: Settings
) -> None:
    with_password(client, owner)
    secret, codes = made(client, clock)

    assert client.post(OWN, {"code": "1", "remove": "1"}).status_code == 200
    assert client.post(OWN, {"code": codes[0]})["Location"] == CODES
    renewed = shown_codes(client.read(CODES))
    assert len(set(renewed) - set(codes)) == 10
    settings.PROCESSION_SECOND_FACTOR = "required"
    assert 'name="remove"' not in client.read(OWN)
    client.post(OWN, {"code": renewed[0], "remove": "1"})
    assert Authenticator.objects.count() == 2
    settings.PROCESSION_SECOND_FACTOR = "optional"
    clock[0] += 60
    code = code_at(secret, clock[0])
    assert client.post(OWN, {"code": code, "remove": "1"})["Location"] == OWN
    assert not Authenticator.objects.exists()
    assert is_in(client)


def test_it_is_made_soon_after_signing_in_only(owner: User, client: Client) -> None:
    with_password(client, owner)
    session = client.session
    session[SIGNED_IN] -= 901
    session.save()

    assert "sign in again first" in client.read(OWN)
    client.post(OWN, {"code": "1"})
    assert not Authenticator.objects.exists()


def test_where_it_is_required_nothing_answers_before_it_is_made(
    owner: User, client: Client, clock: list[float], required: None
) -> None:
    old = Client()
    old.force_login(owner, "django.contrib.auth.backends.ModelBackend")
    assert not is_in(old)  # a session of before

    assert client.get(sign_in_path(owner))["Location"] == PAGE
    for path in ("/processes/", OWN, "/admin/", "/api/processes/", "/metrics"):
        assert client.get(path).status_code in (302, 401, 403), path
    secret = shown_secret(client.read(PAGE))
    assert client.post(PAGE, {"code": "1"}).status_code == 200
    answer = client.post(PAGE, {"code": code_at(secret, clock[0])})
    assert answer["Location"] == CODES
    page = client.read(CODES)
    assert len(shown_codes(page)) == 10
    assert 'href="/"' in page
    assert is_in(client)


def test_a_session_outlives_a_new_password_that_it_has_set_itself(
    owner: User, client: Client, clock: list[float], required: None
) -> None:
    with_password(client, owner)
    secret = shown_secret(client.read(PAGE))
    client.post(PAGE, {"code": code_at(secret, clock[0])})
    User.objects.filter(pk=owner.pk).update(is_staff=True)
    other = Client()
    with_password(other, owner)
    other.post(PAGE, {"code": code_at(secret, clock[0] + 30)})
    assert is_in(other)

    changed = "another good long password"
    form = {
        "old_password": PASSWORD,
        "new_password1": changed,
        "new_password2": changed,
    }
    assert client.post("/admin/password_change/", form).status_code == 302

    assert (is_in(client), is_in(other)) == (True, False)


def test_a_reset_ends_the_sessions_and_another_one_is_made(
    owner: User,
    client: Client,
    clock: list[float],
    required: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_password(client, owner)
    secret = shown_secret(client.read(PAGE))
    client.post(PAGE, {"code": code_at(secret, clock[0])})
    assert is_in(client)
    assert SecondFactorBackend().get_user(owner.pk) == owner

    call_command("reset_second_factor", owner.username)
    call_command("reset_second_factor", owner.username)

    assert capsys.readouterr().out == (
        "administrator has no second factor any more.\nadministrator had no second factor.\n"
    )
    assert not is_in(client)
    again = Client()
    assert with_password(again, owner)["Location"] == PAGE
    renewed = shown_secret(again.read(PAGE))
    again.post(PAGE, {"code": code_at(renewed, clock[0])})
    assert renewed != secret
    assert is_in(again)
    assert not is_in(client)  # a session of the lost phone stays over
    with pytest.raises(CommandError, match="There is no user 'nobody'"):
        call_command("reset_second_factor", "nobody")


def test_a_sign_in_that_has_begun_ends_with_the_password_or_the_second_factor(
    owner: User, client: Client, clock: list[float]
) -> None:
    with_password(client, owner)
    secret, _ = made(client, clock)
    waiting, other = Client(), Client()
    with_password(waiting, owner)
    with_password(other, owner)

    call_command("reset_second_factor", owner.username)
    assert waiting.get(PAGE)["Location"] == "/sign-in/"

    made(client, clock)
    with_password(waiting, owner)
    owner.refresh_from_db()
    owner.set_password("another good long password")
    owner.save()
    assert waiting.get(PAGE)["Location"] == "/sign-in/"
    assert waiting.post(PAGE, {"code": code_at(secret, clock[0])}).status_code == 302
    assert not is_in(waiting)


def test_failures_before_a_link_and_a_code_are_told(
    owner: User, client: Client, clock: list[float]
) -> None:
    with_password(client, owner)
    _, codes = made(client, clock)
    wrong = {"username": owner.username, "password": "wrong"}
    Client().post("/sign-in/", wrong, REMOTE_ADDR="192.0.2.66")
    owner.refresh_from_db()
    other, link = Client(), sign_in_path(owner)

    assert other.head(link).status_code == 405  # a preview
    assert other.get(link)["Location"] == PAGE
    other.post(PAGE, {"code": codes[0]})
    assert "Failed attempts" in other.read("/")


def test_nothing_leads_a_person_who_is_signed_in_elsewhere(
    owner: User, client: Client, clock: list[float], settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = [".example.org", "testserver"]
    with_password(client, owner)

    assert client.get(PAGE, {"next": "https://a.example.org/"})["Location"] == "/"
    secret = shown_secret(client.read(OWN))
    client.post(OWN, {"code": code_at(secret, clock[0])})
    assert client.head(CODES).status_code == 405
    assert shown_codes(client.read(CODES))


def test_the_administration_resets_it_and_shows_no_secret(
    owner: User, client: Client, clock: list[float], viewer: User
) -> None:
    with_password(client, owner)
    secret, _ = made(client, clock)
    row = Authenticator.objects.get(type="totp")
    User.objects.filter(pk=owner.pk).update(is_staff=True, is_superuser=True)

    page = client.read(f"/admin/mfa/authenticator/{row.pk}/change/")
    client.post(f"/admin/mfa/authenticator/{row.pk}/delete/", {"post": "yes"})

    assert secret not in page
    assert not Authenticator.objects.filter(pk=row.pk).exists()
    assert client.get("/admin/socialaccount/socialapp/").status_code == 404


def test_who_comes_by_the_provider_is_not_asked(
    client: Client, required: None, settings: Settings, clock: list[float]
) -> None:
    Group.objects.create(name="operators")
    with serving() as provider:
        provider.claims = dict(by_provider.ANNA)
        by_provider.trust(provider, settings)
        answer = by_provider.came(client)
        assert (answer.status_code, answer["Location"]) == (302, "/")
        assert "asks for no second factor of its own" in client.read(OWN)
        client.post(OWN, {"code": "1"})
    assert not Authenticator.objects.exists()
    user = by_provider.user_of(client)
    assert user is not None
    other = Client()
    assert other.get(sign_in_path(user))["Location"] == PAGE


def test_the_pages_speak_japanese(
    owner: User, client: Client, clock: list[float]
) -> None:
    japanese: Any = {"HTTP_ACCEPT_LANGUAGE": "ja"}
    assert "Example IDでサインイン" in client.read("/sign-in/", **japanese)
    with_password(client, owner)
    assert "2要素認証の設定" in client.read(OWN, **japanese)
    made(client, clock)
    assert "残り10個" in client.read(OWN, **japanese)
    client.post("/sign-out/")
    with_password(client, owner)
    assert "リカバリーコードを1つ入力" in client.read(PAGE, **japanese)
