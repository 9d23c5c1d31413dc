"""Who is to be told, as settings and environment say it, and how what cannot be is refused."""

from types import MappingProxyType
from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from orchestrator.configuration.conf import SettingRefused
from orchestrator.configuration.notice_settings import (
    Topic,
    is_notice_wanted,
    recipients,
)
from tests.services.cases import cases
from tests.unit.given import given, refusal

KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="
URL = "https://pager.example.org/hooks/T0PSECRET?k=1"
OPS = {"to": ["ops@example.org"]}
ROOMS = "tests.apps.own_channel.room"
ROOM = f"{ROOMS}.Room"

BAD: list[tuple[Any, str]] = [
    ([OPS], "must be a dictionary, not a list."),
    ({"ops": OPS["to"]}, "['ops'] must be a dictionary, not a list."),
    ({"": OPS}, "[''] must have a name of up to 50 letters, not blank, without"),
    ({"a\nb": OPS}, "must have a name of up to 50 letters, not blank, without"),
    ({"ops": {}}, "['ops'] must have one of to, url and channel, not none."),
    ({"ops": {**OPS, "channel": ROOM}}, "url and channel, not to and channel."),
    (
        {"ops": {"to": "ops"}},
        "['to'] must list mail addresses such as operators@example.org, not 'ops'.",
    ),
    ({"ops": {"to": "a@example.org\nBcc: b@example.org"}}, "must list mail addresses"),
    ({"ops": {"to": []}}, "['to'] must list mail addresses"),
    ({"ops": {"url": URL}}, "must have url and secret together"),
    ({"ops": {**OPS, "secret": KEY}}, "must have url and secret together"),
    (
        {"ops": {"url": "http://pager.example.org/", "secret": KEY}},
        "['url'] must look like https://host:8000/path, without a user",
    ),
    ({"ops": {"url": "https://u:p@h/", "secret": KEY}}, "['url'] must look like"),
    ({"ops": {"url": "https://h/a b", "secret": KEY}}, "['url'] must look like"),
    ({"ops": {"url": "https://h/\r\nX: y", "secret": KEY}}, "['url'] must look like"),
    ({"ops": {"url": URL, "secret": "hello"}}, "['secret'] must be whsec_ and the"),
    ({"ops": {"url": URL, "secret": [KEY] * 3}}, "['secret'] must be whsec_ and the"),
    ({"ops": {"channel": "chat"}}, "['channel'] must be the path of a class, such as"),
    ({"ops": {**OPS, "options": {"a": 1}}}, "must have a channel for its options"),
    (
        {"ops": {"options": {"a": 1}}},
        "['ops'] must have one of to, url and channel, not none. It must have a channel for its options.",
    ),
    (
        {"ops": {**OPS, "about": ["escalations"]}},
        "['about'] must list some of escalation, failure, deadline, queue, not",
    ),
    ({"ops": {**OPS, "about": []}}, "['about'] must list some of"),
    ({"ops": {**OPS, "definitions": [1]}}, "['definitions'] must list names"),
    ({"ops": {**OPS, "seconds": 0}}, "['seconds'] must be a number from 1 to 86,400"),
    ({"ops": {**OPS, "seconds": float("nan")}}, "['seconds'] must be a number from"),
    ({"ops": {**OPS, "secrets": KEY}}, "['secrets'] does not exist; there are to,"),
]


@cases("notices, line", *BAD)
def test_what_is_wrong_is_refused(notices: Any, line: str, settings: Settings) -> None:
    settings.PROCESSION_NOTICES = notices

    found = [one for one in run_checks(tags=["orchestrator"]) if one.is_serious()]

    assert {one.id for one in found} == {"orchestrator.E012"}
    assert any(line in one.msg for one in found)
    for one in found:
        assert one.msg.startswith("settings.PROCESSION_NOTICES")
        assert len(one.msg.splitlines()) == 1
        assert "whsec" not in one.msg.replace("be whsec_ and", "")
        assert "T0PSECRET" not in one.msg
    with pytest.raises(SettingRefused):
        recipients()


def test_the_engine_goes_on_where_they_are_wrong(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {"ops": {}}

    assert is_notice_wanted([Topic.FAILURE], "any")


def test_one_text_is_a_list_of_that(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {
        "ops": {"url": URL, "secret": KEY, "about": "queue", "definitions": "a"}
    }
    [found] = recipients().values()

    assert (found.secret, found.about, found.definitions) == ([KEY], ["queue"], ["a"])
    settings.PROCESSION_NOTICES["ops"]["about"] = "failure"
    assert recipients()["ops"].about == ["failure"]


@cases(
    "notices, line",
    ({"channel": f"{ROOMS}.Nobody"}, "cannot be made (Import"),
    ({"channel": ROOM}, "cannot be made (TypeError"),
    ({"channel": f"{ROOMS}.NoChannel"}, "without a method send(message)."),
    ({**OPS, "definitions": ["order-listings"]}, "which is no definition's name"),
)
def test_nobody_told_is_an_error(notices: Any, line: str, settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {"ops": notices}
    settings.PROCESSION_SITE_URL = "https://example.org"

    [error] = run_checks(tags=["orchestrator"])

    assert (error.id, bool(error.hint)) == ("orchestrator.E012", True)
    assert line in error.msg


def test_notices_without_links_are_a_warning(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {"ops": OPS}
    [warning] = run_checks(tags=["orchestrator"])
    assert warning.id == "orchestrator.W003"
    settings.PROCESSION_SITE_URL = "https://example.org"

    assert run_checks(tags=["orchestrator"]) == []


# The variables of the bundled project


def test_the_variables_of_a_recipient_are_its_dictionary() -> None:
    found = given(
        NOTICE_TO_OPS="a@example.org, b@example.org",
        NOTICE_ABOUT_OPS="failure,queue",
        NOTICE_DEFINITIONS_OPS="order-listing",
        NOTICE_URL_PAGER=URL,
        NOTICE_SECRET_PAGER=KEY,
        NOTICE_SECONDS_PAGER="60",
        NOTICE_CHANNEL_ROOM=ROOM,
    )

    assert found.notices == {
        "ops": {
            "to": ["a@example.org", "b@example.org"],
            "about": ["failure", "queue"],
            "definitions": ["order-listing"],
        },
        "pager": {"url": URL, "secret": [KEY], "seconds": 60},
        "room": {"channel": ROOM},
    }


WHOSE = "The recipient of PROCESSION_NOTICE_TO_OPS and the like must have"


@cases(
    "name, value, line",
    ("NOTICE_TO_OPS", "ops", "PROCESSION_NOTICE_TO_OPS must list mail addresses"),
    ("NOTICE_ABOUT_OPS", "x", "PROCESSION_NOTICE_ABOUT_OPS must list some of"),
    ("NOTICE_SECONDS_OPS", "soon", "PROCESSION_NOTICE_SECONDS_OPS must be a"),
    ("NOTICE_URL_OPS", "ftp://h", "PROCESSION_NOTICE_URL_OPS must look like"),
    ("NOTICE_SECRET_OPS", "abc", "PROCESSION_NOTICE_SECRET_OPS must be whsec_"),
    ("NOTICE_CHANNEL_OPS", "x", "PROCESSION_NOTICE_CHANNEL_OPS must be the path"),
    ("NOTICE_ABOUT_OPS", "queue", f"{WHOSE} one of"),
    ("NOTICE_URL_OPS", URL, f"{WHOSE} url and"),
    ("SMTP_URL", "mail.example.org", "PROCESSION_SMTP_URL must look like smtp:"),
    ("SMTP_URL", "smtp://h/path", "PROCESSION_SMTP_URL must look like smtp://"),
    ("MAIL_FROM", "procession", "PROCESSION_MAIL_FROM must be a mail address"),
    ("SITE_URL", "example.org", "PROCESSION_SITE_URL must look like https://"),
    ("LANGUAGE", "de", "PROCESSION_LANGUAGE must be en or ja, not 'de'."),
)
def test_an_unusable_variable_is_refused(name: str, value: str, line: str) -> None:
    told = refusal(**{name: value})

    assert told.startswith(line)
    assert "T0PSECRET" not in told


@cases(
    "url, server",
    ("", ("localhost", 25, "", "", False, False)),
    ("smtp://mail", ("mail", 25, "", "", False, False)),
    ("smtp+starttls://u:p%40%2F@mail", ("mail", 587, "u", "p@/", True, False)),
    ("smtps://u:p@mail:4650/", ("mail", 4650, "u", "p", False, True)),
)
def test_the_mail_server_is_an_address(url: str, server: tuple[Any, ...]) -> None:
    """Its host, port, user and password, and whether it speaks STARTTLS or TLS."""
    assert given(SMTP_URL=url).mail_server == server


def test_recipients_may_be_a_mapping_that_cannot_be_copied(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = MappingProxyType({"ops": OPS})

    assert [*recipients()] == ["ops"]
    assert [*recipients()] == ["ops"]
