"""Personal access tokens: made, shown once, used, expired, revoked; and who is let in by them, and who is not."""

import logging
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from monitoring.api import wrong_tokens as throttle
from monitoring.api.wrong_tokens import WrongTokens
from orchestrator.access_tokens import find_token, new_token_value, token_digest
from orchestrator.engine.operations import make_token, revoke_token
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import AccessToken, OperatorAction
from tests.conftest import permissions
from tests.services.asking import asked
from tests.services.client import Client

pytestmark = pytest.mark.django_db

VALUE = re.compile(r"pcs_[A-Za-z0-9_-]{43}")


FORM = {"name": "nightly", "days": "30"}


def made(owner: User, name: str = "bot") -> tuple[AccessToken, str]:
    token, value = make_token(name, 30, request=asked(actor=owner))
    assert token is not None
    return token, value


def bringing(value: str, **more: Any) -> Client:
    return Client(headers={"authorization": f"Bearer {value}"}, **more)


def status(value: str, address: str = "/api/processes/") -> int:
    return bringing(value).get(address).status_code


# Making


def test_a_token_is_shown_once_and_only_its_digest_is_kept(operating: Client) -> None:
    form = {**FORM, "key": str(uuid4())}

    answer = operating.post("/tokens/", form)

    [value] = set(VALUE.findall(answer.content.decode()))
    assert answer["Cache-Control"] == "no-store"
    token = AccessToken.objects.get()
    assert token.digest == token_digest(value)
    rows = [*AccessToken.objects.values(), *OperatorAction.objects.values()]
    assert value not in str(rows)
    assert (token.expires_at - token.created_at).days == 30
    again = operating.post("/tokens/", form)
    assert again.status_code == 409
    for page in (again.content.decode(), operating.read("/tokens/")):
        assert not VALUE.search(page)
    assert AccessToken.objects.count() == 1


def test_two_tokens_are_never_alike_and_what_can_be_none_is_not_looked_for() -> None:
    assert len({new_token_value() for _ in range(1_000)}) == 1_000
    assert len(bytes.fromhex(token_digest(new_token_value()))) == 32
    with CaptureQueriesContext(connection) as asked_for:
        for text in ("", "pcs_", "x" * 47, "pcs_" + "é" * 43, "pcs_" + "a" * 44):
            assert find_token(token_digest(text)) is None
    assert len(asked_for) == 0


def test_it_is_for_a_year_at_most_and_for_who_may_have_one(
    operating: Client, viewing: Client
) -> None:
    for days in ("0", "366", "", "x", "9" * 30):
        form = {**FORM, "key": str(uuid4()), "days": days}
        assert operating.post("/tokens/", form).status_code in (400, 409), days
    assert 'aria-describedby="make-why"' in viewing.read("/tokens/")
    form = {**FORM, "key": str(uuid4())}
    assert viewing.post("/tokens/", form).status_code == 403
    assert not AccessToken.objects.exists()


def test_making_and_revoking_are_in_the_audit_once_each(operator: User) -> None:
    token, _value = made(operator)
    other, _value = made(operator, "other")
    press = asked()
    first = revoke_token(token.pk, request=press)

    assert revoke_token(token.pk, request=press) == first
    with pytest.raises(OperationRefused, match="used for another action"):
        revoke_token(other.pk, request=press)
    other.refresh_from_db()
    assert other.revoked_at is None
    told = {"token": "bot", "owner": "operator", "token_id": token.pk}
    rows = OperatorAction.objects.filter(result="done").order_by("pk")
    assert [row.action for row in rows] == ["make_token", "make_token", "revoke_token"]
    assert (rows[0].after["token"], rows[2].after) == ("bot", told)


def test_so_many_and_no_more_and_each_has_a_name_of_its_own(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.engine.operations.desk.access_tokens.MOST", 2)
    for name in ("", " ", "x" * 101, "\0"):
        with pytest.raises(OperationRefused, match="a name of at most"):
            made(operator, name)
    made(operator, "one")
    with pytest.raises(OperationRefused, match="another token of the name 'one'"):
        made(operator, "one")
    token, _value = made(operator, "two")
    with pytest.raises(OperationRefused, match="2 tokens already"):
        made(operator, "three")
    revoke_token(token.pk, request=asked())
    AccessToken.objects.filter(name="one").update(expires_at=timezone.now())

    made(operator, "one")  # that has expired
    made(operator, "two")  # that was revoked
    assert AccessToken.objects.count() == 4


# Using


def test_it_is_good_until_it_expires_or_is_revoked(operator: User) -> None:
    token, value = made(operator)
    for seconds, answer in ((-1, 401), (60, 200)):
        until = timezone.now() + timedelta(seconds=seconds)
        AccessToken.objects.update(expires_at=until)
        assert status(value) == answer
    revoke_token(token.pk, request=asked())
    assert status(value) == 401


def test_it_may_what_its_owner_may_at_that_moment(operator: User) -> None:
    _token, value = made(operator)
    for taken, answer in (("use_accesstoken", 401), ("view_processinstance", 403)):
        operator.user_permissions.remove(permissions()[taken])
        assert status(value) == answer, taken
        operator.user_permissions.add(permissions()[taken])
    for active, answer in ((False, 401), (True, 200)):
        User.objects.update(is_active=active)
        assert status(value) == answer
    operator.delete()
    assert status(value) == 401
    assert not AccessToken.objects.exists()


def test_that_it_is_used_is_written_once_a_minute(operator: User) -> None:
    digest = token_digest(made(operator)[1])
    writes = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as asked_for:
            assert find_token(digest)
        writes.append(sum(one["sql"].startswith("UPDATE") for one in asked_for))
    assert writes == [1, 0, 0]
    long_ago = timezone.now() - timedelta(minutes=2)
    AccessToken.objects.update(last_used_at=long_ago)

    assert find_token(digest)
    assert AccessToken.objects.get().last_used_at > long_ago  # type: ignore[operator]


def test_a_session_needs_no_form_token(administrator: User, admin: Client) -> None:
    for method in ("get", "post", "put", "delete", "options"):
        answer = getattr(admin, method)("/api/processes/")
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == 'Bearer realm="Procession"'
        assert answer.json()["error"] == "unauthorized"
    strict = bringing(made(administrator)[1], enforce_csrf_checks=True)
    assert strict.post("/api/processes/").status_code == 405
    assert not strict.cookies


def test_anything_else_is_refused(operator: User) -> None:
    _token, value = made(operator)
    assert Client().get(f"/api/?token={value}").status_code == 401
    wrong = f"|Bearer|Basic YTpi|Bearer  |Token {value}|bearer{value}|Bearer {value}x"
    for given in wrong.split("|"):
        client = Client(headers={"authorization": given})
        assert client.get("/api/").status_code == 401, given


# Too many


def test_who_brings_wrong_ones_waits_and_who_brings_a_good_one_does_not(
    operator: User, caplog: pytest.LogCaptureFixture
) -> None:
    _token, value = made(operator)
    with caplog.at_level(logging.DEBUG):
        answers = [bringing(new_token_value()).get("/api/") for _ in range(15)]

    assert [one.status_code for one in answers] == [401] * 10 + [429] * 5
    assert 800 < int(answers[-1]["Retry-After"]) <= 900
    assert caplog.text.count("no good access token") == 10
    assert status(value) == 200
    elsewhere = bringing(new_token_value(), REMOTE_ADDR="192.0.2.7")
    assert elsewhere.get("/api/").status_code == 401


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

    client = bringing(value, raise_request_exception=False)
    for place in (
        "orchestrator.access_tokens._note_use",
        "monitoring.api.lists.process_page",
    ):
        with caplog.at_level(logging.DEBUG), monkeypatch.context() as patch:
            patch.setattr(place, broken)
            page = client.read("/api/processes/", status=500)
        assert "planted" in page
        assert value[4:] not in page
    assert value not in caplog.text


# The page, and the administration


def test_the_page_has_ones_own_with_those_that_are_over(
    operator: User, administrator: User, operating: Client
) -> None:
    made(operator, "living")
    made(operator, "old")
    AccessToken.objects.filter(name="old").update(expires_at=timezone.now())
    gone, _value = made(operator, "gone")
    revoke_token(gone.pk, request=asked())
    made(administrator, "another's")

    page = operating.read("/tokens/")

    found = re.findall(r'<tr id="token-\d+" data-state="(\w+)">', page)
    assert found == ["living", "revoked", "expired"]
    assert "another&#x27;s" not in page
    assert page.count('data-opens="revoke_token-dialog"') == 1


def test_ones_own_alone_is_revoked_freely(operator: User, administrator: User) -> None:
    token, value = made(operator)
    other, _value = made(administrator, "other")

    for pk in (other.pk, 10**15):
        with pytest.raises(PermissionMissing):
            revoke_token(pk, request=asked())
    assert status(value) == 200
    revoke_token(token.pk, request=asked(actor=administrator))
    assert status(value) == 401
    with pytest.raises(OperationRefused, match="revoked already"):
        revoke_token(token.pk, request=asked(actor=administrator))


def test_the_administration_shows_all_of_all_but_no_digest_and_revokes(
    operator: User, admin: Client
) -> None:
    token, value = made(operator)
    address = "/admin/orchestrator/accesstoken/"

    assert "bot" in admin.read(address)
    for page in (admin.read(address), admin.read(f"{address}{token.pk}/change/")):
        assert token.digest not in page
        assert value not in page
    chosen = {"action": "revoke_token", "_selected_action": [token.pk]}
    admin.post(address, {**chosen, "key": str(uuid4())})
    assert status(value) == 401
    assert AccessToken.objects.get().revoked_by == "administrator"
