"""Signing in to the bundled project: who fails too often has to wait, and whose account it was is told."""

import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from orchestrator import sign_in
from orchestrator.sign_in import sign_in_path
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.once]

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quick_hashes(settings: object) -> None:
    """Let forty passwords be compared in no time."""
    quick = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.PASSWORD_HASHERS = quick  # type: ignore[attr-defined]


@pytest.fixture
def owner(administrator: User) -> User:
    administrator.set_password(PASSWORD)
    administrator.save()
    return administrator


def tried(name: str, password: str, address: str = "192.0.2.1") -> int:
    """Return the status of one attempt to sign in."""
    return int(answered(name, password, address).status_code)


def answered(name: str, password: str, address: str = "192.0.2.1") -> Any:
    form = {"username": name, "password": password}
    return Client().post("/sign-in/", form, REMOTE_ADDR=address)


def test_of_forty_wrong_passwords_ten_are_looked_at(owner: User) -> None:
    answers = [tried("administrator", f"wrong {number}") for number in range(40)]

    assert answers == [200] * 9 + [429] * 31
    assert AccessFailureLog.objects.filter(username="administrator").count() == 10


@pytest.mark.django_db(transaction=True)
def test_forty_at_once_are_no_way_round(
    owner: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "TURN_SECONDS", 600)  # however slow the machine is
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]

    def attempt(number: int) -> int:
        try:
            return tried("administrator", f"wrong {number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(40) as threads:
        answers = Counter(threads.map(attempt, range(40)))

    assert answers == {200: 9, 429: 31}
    assert AccessFailureLog.objects.count() == 10


def test_a_sign_in_that_never_ends_keeps_nobody_out(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "TURN_SECONDS", 0.01)

    with sign_in._turn:
        assert tried("administrator", PASSWORD) == 302
    assert sign_in._turn.acquire(blocking=False)
    sign_in._turn.release()


def test_an_account_is_throttled_from_everywhere_and_an_address_for_everybody(
    owner: User, viewer: User
) -> None:
    for number in range(10):
        tried("administrator", "wrong", f"192.0.2.{number}")
    assert tried("administrator", PASSWORD, "203.0.113.9") == 429
    assert tried("viewer", "wrong", "203.0.113.9") == 200

    for number in range(10):
        tried(f"somebody {number}", "wrong", "198.51.100.7")
    assert tried("viewer", "wrong", "198.51.100.7") == 429


def test_it_says_when_to_come_again_and_a_link_lets_in_meanwhile(owner: User) -> None:
    for _ in range(10):
        tried("administrator", "wrong")

    answer = answered("administrator", PASSWORD)

    assert answer["Retry-After"] == "900"
    assert "Wait a quarter of an hour" in answer.content.decode()
    follow(owner).read("/")


def test_after_a_quarter_of_an_hour_it_may_be_tried_again(owner: User) -> None:
    for _ in range(15):
        tried("administrator", "wrong")
    before = timezone.now() - timedelta(minutes=15)
    AccessAttempt.objects.filter(failures_since_start=10).update(attempt_time=before)

    assert tried("administrator", PASSWORD) == 302


def follow(user: User) -> Client:
    client = Client()
    client.get(sign_in_path(user))
    return client


@cases("by_link", False, True)
def test_the_owner_is_told_once_at_the_next_sign_in(by_link: bool, owner: User) -> None:
    for _ in range(3):
        tried("administrator", "wrong", "192.0.2.66")
    tried("somebody else", "wrong")
    client = follow(owner) if by_link else Client()
    if not by_link:
        client.post("/sign-in/", {"username": "administrator", "password": PASSWORD})

    page = client.read("/")

    told = "Failed attempts to sign in as you since the last time: 3, the last on"
    assert told in page
    assert "from 192.0.2.66" in page
    assert told not in client.read("/")
    assert "Failed attempts" not in follow(User.objects.get(pk=owner.pk)).read("/")


def test_every_way_in_is_in_the_books(owner: User) -> None:
    tried("administrator", "wrong")
    tried("administrator", PASSWORD)

    for [row] in (AccessFailureLog.objects.all(), AccessLog.objects.all()):
        assert (row.username, row.ip_address) == ("administrator", "192.0.2.1")


def test_no_table_and_no_log_has_a_password(
    owner: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        tried("administrator", "a secret that was misspelt")
        tried("administrator", PASSWORD)

    kept = [*AccessAttempt.objects.values(), *AccessFailureLog.objects.values()]
    for secret in ("misspelt", PASSWORD):
        assert secret not in str(kept) + caplog.text


def test_the_administration_has_no_door_of_its_own(client: Client) -> None:
    answer = client.get("/admin/login/?next=/admin/")

    assert answer["Location"] == "/sign-in/?next=/admin/"
    assert client.post("/admin/login/").status_code == 302


@cases("name", "a\0b", "9" * 10_000, "\ud7ff\u202e", "")
def test_names_that_nobody_can_have_are_wrong_and_no_error(name: str) -> None:
    assert tried(name, "x\0y") == 200


@pytest.mark.parametrize("address", ["/admin/", "/admin/orchestrator/", "/admin/rq/"])
def test_who_is_signed_in_and_may_not_is_told_and_sent_nowhere(
    address: str, viewing: Client, client: Client
) -> None:
    assert viewing.get(address, follow=True).status_code == 403
    assert client.get(address, follow=True).status_code == 200  # the sign-in page
