"""Personal access tokens: made, shown once, used, expired, revoked; and who is let in by them, and who is not."""

import logging
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from monitoring.api import wrong_tokens as throttle
from monitoring.api.wrong_tokens import WrongTokens, wrong_tokens
from orchestrator import access_tokens
from orchestrator.access_tokens import digest_of, holder_of, new_value
from orchestrator.engine.operations import ActionRequest, make_token, revoke_token
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import AccessToken, OperatorAction

pytestmark = pytest.mark.django_db

VALUE = re.compile(r"pcs_[A-Za-z0-9_-]{43}")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Nobody has brought a wrong token yet."""
    wrong_tokens.forget()


def asked(actor: User, **more: Any) -> ActionRequest:
    return ActionRequest(actor, more.pop("key", uuid4()), **more)


def made(owner: User, name: str = "bot", days: int = 30) -> tuple[AccessToken, str]:
    token, value = make_token(name, days, request=asked(owner))
    assert token is not None
    return token, value


def bringing(value: str, **more: Any) -> Client:
    return Client(headers={"authorization": f"Bearer {value}"}, **more)


def status(value: str, address: str = "/api/processes/") -> int:
    return bringing(value).get(address).status_code


# Making


def test_a_token_is_shown_once_and_only_its_digest_is_kept(
    operator: User, client: Client
) -> None:
    client.force_login(operator)
    form = {"key": str(uuid4()), "name": "nightly", "days": "30"}

    answer = client.post("/tokens/", form)

    [value] = set(VALUE.findall(answer.content.decode()))
    assert answer["Cache-Control"] == "no-store"
    token = AccessToken.objects.get()
    assert token.digest == digest_of(value)
    assert value not in str(
        [*AccessToken.objects.values(), *OperatorAction.objects.values()]
    )
    assert (token.expires_at - token.created_at).days == 30
    again = client.post("/tokens/", form)
    assert again.status_code == 409
    for page in (again, client.get("/tokens/")):
        assert not VALUE.search(page.content.decode())
    assert AccessToken.objects.count() == 1


def test_two_tokens_are_never_alike() -> None:
    assert len({new_value() for _ in range(1_000)}) == 1_000
    assert len(bytes.fromhex(digest_of(new_value()))) == 32


def test_what_cannot_be_a_token_is_not_looked_for() -> None:
    for text in ("", "pcs_", "x" * 47, "pcs_" + "é" * 43, "pcs_" + "a" * 44):
        with CaptureQueriesContext(connection) as asked_for:
            assert holder_of(digest_of(text)) is None
        assert len(asked_for) == 0, text


def test_it_expires_within_a_year(operator: User, client: Client) -> None:
    client.force_login(operator)
    for days in ("0", "366", "", "x", "9" * 30):
        form = {"key": str(uuid4()), "name": "bot", "days": days}
        assert client.post("/tokens/", form).status_code in (400, 409), days
    assert not AccessToken.objects.exists()


def test_making_and_revoking_are_in_the_audit(operator: User) -> None:
    token, _value = made(operator)
    revoke_token(token.pk, request=asked(operator))

    first, last = OperatorAction.objects.order_by("pk")
    assert (first.action, first.after["token"]) == ("make_token", "bot")
    assert (last.action, last.after) == (
        "revoke_token",
        {"token": "bot", "owner": "operator", "token_id": token.pk},
    )


def test_so_many_and_no_more_and_each_has_a_name_of_its_own(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "orchestrator.engine.operations.access_tokens.MOST"
    monkeypatch.setattr(module, 2)
    made(operator, "one")
    with pytest.raises(OperationRefused, match="another token of the name 'one'"):
        made(operator, "one")
    token, _value = made(operator, "two")
    with pytest.raises(OperationRefused, match="2 tokens already"):
        made(operator, "three")
    revoke_token(token.pk, request=asked(operator))
    AccessToken.objects.filter(name="one").update(expires_at=timezone.now())

    made(operator, "one")  # that has expired
    made(operator, "two")  # that was revoked
    assert AccessToken.objects.count() == 4


def test_a_name_is_none_of_these(operator: User) -> None:
    for name in ("", " ", "x" * 101, "\0"):
        with pytest.raises(OperationRefused, match="a name of at most"):
            made(operator, name)


def test_who_may_not_make_one_is_told_and_refused(viewer: User, client: Client) -> None:
    client.force_login(viewer)
    page = client.get("/tokens/").content.decode()
    form = {"key": str(uuid4()), "name": "bot", "days": "30"}

    assert 'aria-describedby="make-why"' in page
    assert client.post("/tokens/", form).status_code == 403
    assert not AccessToken.objects.exists()


# Using


def test_it_is_good_until_it_expires_or_is_revoked(operator: User) -> None:
    token, value = made(operator)
    assert status(value) == 200

    AccessToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status(value) == 401
    AccessToken.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert status(value) == 200
    revoke_token(token.pk, request=asked(operator))
    assert status(value) == 401


def test_it_may_what_its_owner_may_at_that_moment(operator: User) -> None:
    _token, value = made(operator)
    for taken, answer in (("use_accesstoken", 401), ("view_processinstance", 403)):
        permission = Permission.objects.get(codename=taken)
        operator.user_permissions.remove(permission)
        assert status(value) == answer, taken
        operator.user_permissions.add(permission)
    assert status(value) == 200


def test_of_somebody_who_is_inactive_or_gone_it_is_none(operator: User) -> None:
    _token, value = made(operator)
    User.objects.update(is_active=False)
    assert status(value) == 401
    User.objects.update(is_active=True)
    assert status(value) == 200
    operator.delete()
    assert status(value) == 401
    assert not AccessToken.objects.exists()


def test_that_it_is_used_is_written_once_a_minute(operator: User) -> None:
    _token, value = made(operator)
    digest = digest_of(value)
    writes = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as asked_for:
            assert holder_of(digest)
        said = [one["sql"] for one in asked_for if one["sql"].startswith("UPDATE")]
        writes.append(len(said))
    assert writes == [1, 0, 0]
    long_ago = timezone.now() - timedelta(minutes=2)
    AccessToken.objects.update(last_used_at=long_ago)

    assert holder_of(digest)
    assert AccessToken.objects.get().last_used_at > long_ago  # type: ignore[operator]


def test_a_session_is_none_and_asks_for_no_form_token(
    administrator: User, client: Client
) -> None:
    client.force_login(administrator)

    for method in ("get", "post", "put", "delete", "options"):
        answer = getattr(client, method)("/api/processes/")
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == 'Bearer realm="Procession"'
        assert answer.json()["error"] == "unauthorized"
    strict = bringing(made(administrator)[1], enforce_csrf_checks=True)
    assert strict.post("/api/processes/").status_code == 405
    assert not strict.cookies


def test_anything_else_is_refused(operator: User) -> None:
    _token, value = made(operator)
    assert Client().get(f"/api/?token={value}").status_code == 401
    for given in (
        "",
        "Bearer",
        "Basic YTpi",
        "Bearer  ",
        "Token {}",
        "bearer{}",
        "Bearer {}x",
    ):
        client = Client(headers={"authorization": given.format(value)})
        assert client.get("/api/").status_code == 401, given


# Too many


def test_who_brings_wrong_ones_waits_and_who_brings_a_good_one_does_not(
    operator: User, caplog: pytest.LogCaptureFixture
) -> None:
    _token, value = made(operator)
    with caplog.at_level(logging.DEBUG):
        answers = [bringing(new_value()).get("/api/") for _ in range(15)]

    assert [one.status_code for one in answers] == [401] * 10 + [429] * 5
    assert 800 < int(answers[-1]["Retry-After"]) <= 900
    assert caplog.text.count("no good access token") == 10
    assert status(value) == 200
    assert (
        bringing(new_value()).get("/api/", REMOTE_ADDR="192.0.2.7").status_code == 401
    )


def test_they_are_counted_anew_after_a_while_and_not_without_end() -> None:
    now = [0.0]
    tries = WrongTokens(lambda: now[0])
    assert [tries.add("a") > 0 for _ in range(12)] == [False] * 10 + [True] * 2
    now[0] = throttle.COOLOFF
    assert tries.add("a") == 0
    for number in range(throttle.MOST + 5):
        tries.add(str(number))
    assert len(tries._tries) == throttle.MOST


# Secrecy


def test_no_value_is_logged_or_on_an_error_page(
    operator: User,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _token, value = made(operator)
    settings.DEBUG = True
    files = "servestatic.middleware.ServeStaticMiddleware"  # would look for all of them
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if one != files]

    def broken(*arguments: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(access_tokens, "_seen", broken)
    client = bringing(value, raise_request_exception=False)

    with caplog.at_level(logging.DEBUG):
        early = client.get("/api/processes/")
        monkeypatch.undo()
        monkeypatch.setattr("monitoring.api.reading.page_of", broken)
        late = client.get("/api/processes/")

    for answer in (early, late):
        assert answer.status_code == 500
        assert "planted" in answer.content.decode()
        assert value not in answer.content.decode()
        assert value[4:] not in answer.content.decode()
    assert value not in caplog.text


# The page, and the administration


def test_the_page_has_ones_own_with_those_that_are_over(
    operator: User, administrator: User, client: Client
) -> None:
    made(operator, "living")
    made(operator, "old")
    AccessToken.objects.filter(name="old").update(expires_at=timezone.now())
    gone, _value = made(operator, "gone")
    revoke_token(gone.pk, request=asked(operator))
    made(administrator, "another's")
    client.force_login(operator)

    page = client.get("/tokens/").content.decode()

    found = re.findall(r'<tr id="token-\d+" data-state="(\w+)">', page)
    assert found == ["living", "revoked", "expired"]
    assert "another&#x27;s" not in page
    assert page.count('data-opens="revoke_token-dialog"') == 1


def test_only_ones_own_is_revoked_without_a_permission(
    operator: User, administrator: User, viewer: User
) -> None:
    token, value = made(operator)
    other, _value = made(administrator, "other")

    for pk in (other.pk, 10**15):
        with pytest.raises(PermissionMissing):
            revoke_token(pk, request=asked(operator))
    assert status(value) == 200
    revoke_token(token.pk, request=asked(administrator))
    assert status(value) == 401
    with pytest.raises(OperationRefused, match="revoked already"):
        revoke_token(token.pk, request=asked(administrator))


def test_revoking_pressed_twice_is_once(operator: User) -> None:
    token, _value = made(operator)
    press = asked(operator)

    first = revoke_token(token.pk, request=press)

    assert revoke_token(token.pk, request=press) == first
    assert OperatorAction.objects.filter(action="revoke_token").count() == 1


def test_a_key_revokes_one_token_alone(operator: User) -> None:
    (one, _), (two, _) = made(operator, "one"), made(operator, "two")
    press = asked(operator)
    revoke_token(one.pk, request=press)

    with pytest.raises(OperationRefused, match="used for another action"):
        revoke_token(two.pk, request=press)

    two.refresh_from_db()
    assert two.revoked_at is None


def test_the_administration_shows_all_of_all_but_no_digest_and_revokes(
    operator: User, administrator: User, client: Client
) -> None:
    token, value = made(operator)
    User.objects.filter(pk=administrator.pk).update(is_staff=True)
    client.force_login(administrator)
    address = "/admin/orchestrator/accesstoken/"

    listed = client.get(address).content.decode()
    shown = client.get(f"{address}{token.pk}/change/").content.decode()

    assert "bot" in listed
    for page in (listed, shown):
        assert token.digest not in page
        assert value not in page
    form = {
        "action": "revoke_token",
        "_selected_action": [token.pk],
        "key": str(uuid4()),
    }
    client.post(address, form)
    assert status(value) == 401
    assert AccessToken.objects.get().revoked_by == "administrator"
