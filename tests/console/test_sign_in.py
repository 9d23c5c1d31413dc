"""Signing in by link."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from axes.models import AccessLog
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.core import signing
from django.db import connection
from pytest_django import Settings

from orchestrator import sign_in
from orchestrator.sign_in import (
    InvalidLink,
    hide_tokens,
    link_backend,
    redeem_link,
    sign_in_path,
)
from tests.conftest import of
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = pytest.mark.django_db


def token(user: User) -> str:
    return sign_in_path(user).split("/")[-2]


def used(link: str) -> bool:
    """Try a link; whether it lets its user in."""
    try:
        redeem_link(link)
    except InvalidLink:
        return False
    finally:
        if not connection.in_atomic_block:
            connection.close()
    return True


def test_a_link_signs_its_user_in_once(viewer: User) -> None:
    link, first, second = sign_in_path(viewer), Client(), Client()

    first.get(link)

    assert first.session["_auth_user_id"] == str(viewer.pk)
    second.read(link, status=403)
    assert "_auth_user_id" not in second.session


def test_a_link_is_made_for_a_user_whose_key_is_a_uuid() -> None:
    key: Any = uuid4()

    link = sign_in_path(User(pk=key)).split("/")[-2]

    assert signing.loads(link, salt=sign_in.SALT) == [str(key), ""]


def test_a_sign_in_voids_the_links_made_before(viewer: User) -> None:
    earlier = token(viewer)

    assert [used(token(viewer)), used(earlier)] == [True, False]


@cases("made", "yesterday", "changed", "for another purpose", "for who was deactivated")
def test_what_is_no_link_of_now_is_refused(
    made: str, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = token(viewer)
    assert signing.loads(link, salt=sign_in.SALT)
    match made:
        case "yesterday":
            monkeypatch.setattr(sign_in, "LIFETIME", timedelta(seconds=-1))
        case "changed":
            link = link[:-1] + "x"
        case "for another purpose":
            link = signing.dumps([viewer.pk, ""], salt="something else")
        case "for who was deactivated":
            User.objects.filter(pk=viewer.pk).update(is_active=False)

    assert not used(link)


def test_the_secret_of_a_link_is_in_no_log(
    viewer: User, caplog: pytest.LogCaptureFixture
) -> None:
    link, secret = sign_in_path(viewer), token(viewer)
    access = logging.getLogger("uvicorn.access")
    hide_tokens(access)

    with caplog.at_level(logging.DEBUG):
        answers = [Client().get(link), Client().get(link)]
        access.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1", "GET", link, "1.1", 302)

    assert [answer.status_code for answer in answers] == [302, 403]
    assert "Forbidden: /sign-in/link/-/" in caplog.text
    assert "GET /sign-in/link/-/ HTTP" in caplog.text
    assert secret not in caplog.text
    assert secret not in str([*AccessLog.objects.values()])


@cases("secret", "x", "a\0b", "é:é:é", "9" * 5_000)
def test_what_is_no_secret_is_refused(secret: str, client: Client) -> None:
    answer = client.get(f"/sign-in/link/{quote(secret)}/")

    assert answer.status_code in (400, 403, 404)
    assert "_auth_user_id" not in client.session


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_at_once_one_wins(viewer: User) -> None:
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(used, [token(viewer)] * 8))

    assert sum(won) == 1


def test_a_link_stands_for_a_backend_that_the_project_has(settings: Settings) -> None:
    assert link_backend() == "django.contrib.auth.backends.ModelBackend"

    settings.AUTHENTICATION_BACKENDS = ["elsewhere.Directory"]

    assert link_backend() == "elsewhere.Directory"


def test_signing_out_takes_a_form_post(viewing: Client) -> None:
    assert viewing.get("/sign-out/").status_code == 405
    assert "_auth_user_id" in viewing.session
    viewing.post("/sign-out/")
    assert "_auth_user_id" not in viewing.session


def test_who_has_no_session_is_sent_to_the_sign_in_page_and_a_script_gets_one_word(
    client: Client,
) -> None:
    assert client.get("/processes/").headers["Location"] == "/sign-in/?next=/processes/"

    answer = client.get("/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (401, b"")
    assert not answer.cookies


def test_a_form_that_is_out_of_date_says_so() -> None:
    client = Client(enforce_csrf_checks=True)

    answer = client.post("/sign-in/", {"username": "nobody", "password": "wrong"})

    assert answer.status_code == 403
    assert "This form was out of date" in answer.content.decode()


def test_every_page_brings_its_policy(client: Client) -> None:
    policy = client.get("/sign-in/").headers["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_queue_dashboard_is_for_superusers(
    operator: User, admin: Client, valkey: object
) -> None:
    User.objects.filter(pk=operator.pk).update(is_staff=True)

    of(operator).read("/admin/rq/", status=403)
    admin.read("/admin/rq/")


def test_the_icon_that_browsers_ask_for_needs_no_signing_in(client: Client) -> None:
    assert finders.find(client.get("/favicon.ico").headers["Location"][8:])
