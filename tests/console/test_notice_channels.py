"""What people get: by e-mail from a real mail server, by webhook at a real receiver, by a channel of the project's."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.mail.backends.base import BaseEmailBackend
from django.core.management import call_command
from django.test.utils import override_script_prefix
from django.utils import timezone, translation
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from monitoring.admin.notices import NoticeAdmin
from monitoring.probes.figures import figures
from orchestrator import Permanent, Retry
from orchestrator.engine.notices import outbox
from orchestrator.exceptions import Outcome
from orchestrator.management.commands import notices
from orchestrator.models import Notice, Occurrence
from orchestrator.notices import NoticeMessage
from orchestrator.notices.item_lines import one_line
from orchestrator.notices.links import console_address
from orchestrator.notices.message import compose_message
from orchestrator.serving.programs import Programs
from orchestrator.text import Text, pack_text, with_error_type
from orchestrator.workers import send_attempt
from tests.apps.own_channel.room import Room
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.receivers import Answering, HookReceiver, MailServer, free_port
from tests.services.telling import deliver, due_now, gathered

pytestmark = pytest.mark.django_db

KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="
OTHER_KEY = "whsec_YW5vdGhlciBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vIG1vcmU="
TOKEN = "xoxb-very-secret"
PROCESS = uuid4()
HOSTILE = "evil\r\nBcc: everybody@example.org\r\n\r\n<script>alert(1)</script>\u2028\u202e\x00"


def happened(**more: Any) -> None:
    """Let something have happened."""
    at = datetime(2026, 11, 23, 3, 32, 13, tzinfo=UTC)
    about = {"topics": "escalation", "definition": "delivery", "step": "Packing"}
    process = {"process_id": PROCESS, "correlation_key": "A-1", "message": "ann: late"}
    Occurrence.objects.create(**{"at": at, **about, **process, **more})


def told_of(**more: Any) -> send_attempt.SendingOutcome:
    """Let something have happened, and tell it; what became of that."""
    happened(**more)
    [outcome] = deliver()
    notice = Notice.objects.latest("pk")
    assert notice.error == outcome.error
    assert (notice.status == "sent") == (outcome.error == "")
    return outcome


def posted_by(receiver: HookReceiver, **more: Any) -> Any:
    """Let something have happened; what the receiver got of it."""
    told_of(**more)
    [posted] = receiver.posted
    return posted


def mailed_by(server: MailServer, **more: Any) -> EmailMessage:
    """Let something have happened; the mail of it."""
    server.mails.clear()
    assert told_of(**more).error == ""
    [(to, mail)] = server.mails
    assert to == ["a@example.org", "b@example.org"]
    return mail


@pytest.fixture
def mail_server(settings: Settings) -> Iterator[MailServer]:
    server = MailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    settings.EMAIL_TIMEOUT = 1
    settings.DEFAULT_FROM_EMAIL = "procession@example.org"
    settings.PROCESSION_SITE_URL = "https://example.org/"
    settings.PROCESSION_NOTICES = {"ops": {"to": ["a@example.org", "b@example.org"]}}
    yield server
    server.stop()


@pytest.fixture
def receiver(settings: Settings) -> Iterator[HookReceiver]:
    receiver = HookReceiver()
    settings.PROCESSION_SITE_URL = "https://example.org"
    settings.PROCESSION_NOTICES = {"pager": {"url": receiver.url, "secret": KEY}}
    yield receiver
    receiver.stop()


def body_of(mail: EmailMessage) -> str:
    return str(mail.get_content()).replace("\r\n", "\n")


# E-mail


def test_a_mail_says_what_happened_and_where_to_see_it(mail_server: MailServer) -> None:
    mail = mailed_by(mail_server)

    said = "delivery A-1 was escalated in the step Packing (ann: late)"
    id = f"<{Notice.objects.get().pk}@example.org>"
    assert (mail["From"], mail["Message-ID"]) == ("procession@example.org", id)
    assert mail["Subject"] == f"[Procession] {said}"
    assert mail["Auto-Submitted"] == "auto-generated"
    where = f"  https://example.org/processes/{PROCESS}/"
    lines = body_of(mail).splitlines()
    assert lines[:3] == [said, "  2026-11-23 03:32:13 UTC", where]


def test_several_things_are_counted_in_the_subject(mail_server: MailServer) -> None:
    for number in range(25):
        happened(correlation_key=f"A-{number}")
    mail = mailed_by(mail_server, topics="deadline")

    assert mail["Subject"] == "[Procession] 25 escalations, 1 passed deadline"
    assert body_of(mail).count("was escalated") == 20
    assert "And 6 more in all." in body_of(mail)


@cases("field", *words("definition correlation_key step message error queue"))
@cases("topics", "escalation", "deadline", "failure", "queue")
def test_hostile_texts_stay_in_their_line(
    topics: str, field: str, mail_server: MailServer
) -> None:
    fields = {"fingerprint": "f"} if topics == "failure" else {}
    evil = HOSTILE.replace("\x00", "")  # which no database takes
    fields |= {"topics": topics, "state": "new", field: evil[:50]}
    mail = mailed_by(mail_server, **fields)

    assert mail["Bcc"] is None
    assert len(str(mail["Subject"]).splitlines()) == 1
    assert not re.search(r"^(Bcc|<script)", body_of(mail), re.MULTILINE)


def test_one_line_is_one_line_of_any_text() -> None:
    text = "evil Bcc: everybody@example.org <script>alert(1)</script>"
    assert one_line(HOSTILE) == text
    assert one_line("\ud800a") == "a"
    assert len(one_line("x" * 10_000_000, 150)) == 150


def test_mails_speak_its_language(settings: Settings, mail_server: MailServer) -> None:
    settings.LANGUAGE_CODE = "ja"
    with translation.override("en"):
        mail = mailed_by(mail_server, correlation_key="注文 7")

    said = "delivery 注文 7 がステップ Packing でエスカレーションされました"
    assert str(mail["Subject"]).strip() == f"[Procession] {said} (ann: late)"
    assert said in body_of(mail)


@cases("topics", "escalation", "failure")
def test_the_engines_own_words_are_translated_and_kept_in_english(
    topics: str, settings: Settings, mail_server: MailServer, receiver: HookReceiver
) -> None:
    settings.LANGUAGE_CODE = "ja"
    settings.PROCESSION_NOTICES["ops"] = {"to": ["ops@example.org"]}
    why = with_error_type(
        "LookupError", Text("no active user has the name %(who)s", "'ann'")
    )
    told = "LookupError: 'ann' という名前の人はいません"
    happened(topics=topics, state="new", message=why, text=pack_text(why))
    happened(topics=topics, state="new", message="no such order", fingerprint="other")
    gathered()
    for written, absent in ((told, str(why)), (str(why), told)):
        receiver.posted.clear()
        mail_server.mails.clear()
        assert [outcome.error for outcome in deliver()] == ["", ""]

        data = json.loads(receiver.posted[0].body)["data"]
        for text in (body_of(mail_server.mails[0][1]), data["text"]):
            assert written in text
            assert absent not in text
            assert "no such order" in text
        assert written in data["items"][0]["text"]
        assert data["items"][0]["message"] == str(why)
        # As a release without the column has written it.
        again = {"status": "gathering", "wake_at": timezone.now()}
        Notice.objects.update(texts={}, **again)


@cases("topics", "escalation", "deadline", "failure", "queue")
@cases("state", "new", "again", "more", "dead", "back")
@cases("number", 1, 5)
def test_every_line_is_translated(topics: str, state: str, number: int) -> None:
    empty = words("process_id queue kind error place message fingerprint step")
    at = "2026-11-23T00:00:00+00:00"
    about = {"topics": [topics], "state": state, "number": number, "at": at}
    keys = {"definition": "", "correlation_key": ""}
    item: dict[str, Any] = {**dict.fromkeys(empty, ""), **keys, **about}

    def said(language: str) -> NoticeMessage:
        counts = {topics: number + 1}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("django.conf.settings.LANGUAGE_CODE", language)
            return compose_message("i", "ops", counts, [item], {}, datetime.now(UTC))

    english, japanese = said("en"), said("ja")
    lines = zip(english.text.splitlines(), japanese.text.splitlines(), strict=True)
    for line, its in lines:
        assert line != its or not line.strip("- ") or "2026" in line
    assert english.subject != japanese.subject


@cases("trouble", "silent", "refusing", "away")
def test_a_mail_that_is_not_taken_is_tried_again(
    trouble: str, settings: Settings, mail_server: MailServer
) -> None:
    if trouble == "silent":
        mail_server.silent.set()
    mail_server.refusal = "451 try again later" * (trouble == "refusing")
    settings.EMAIL_PORT = free_port() if trouble == "away" else mail_server.port
    outcome = told_of()
    assert outcome.error
    assert not outcome.hopeless
    assert Notice.objects.get().status == "sending"
    mail_server.silent.clear()
    mail_server.refusal, settings.EMAIL_PORT = "", mail_server.port
    due_now()

    assert [outcome.error for outcome in deliver()] == [""]
    assert Notice.objects.get().status == "sent"


@cases("sent, error", (None, ""), (0, "sent none"), (1, ""))
def test_a_mail_backend_that_does_not_count_has_sent_it(
    sent: int | None, error: str, settings: Settings, mail_server: MailServer
) -> None:
    """Some put mails into a queue of their own and return nothing: nobody is to get twenty of them."""
    settings.EMAIL_BACKEND = "tests.console.test_notice_channels.Queued"
    Queued.counted = sent
    said = told_of().error

    assert said.endswith(error)
    assert bool(said) == bool(error)


class Queued(BaseEmailBackend):
    """A mail backend of somebody else's."""

    counted: int | None

    def send_messages(self, messages: Sequence[Any]) -> int:
        return self.counted  # type: ignore[return-value]  # as some do


# Webhook


def test_a_webhook_is_signed_and_says_all(receiver: HookReceiver) -> None:
    posted = posted_by(receiver)

    assert posted.path == "/hooks/ops?team=1"
    found = Webhook(KEY).verify(posted.body, posted.headers)
    id = str(Notice.objects.get().pk)
    assert posted.headers["webhook-id"] == id == found["data"]["id"]
    assert posted.headers["content-type"] == "application/json"
    assert found["type"] == "procession.notice"
    [item] = found["data"]["items"]
    where = f"https://example.org/processes/{PROCESS}/"
    assert (item["process_id"], item["url"]) == (str(PROCESS), where)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER_KEY).verify(posted.body, posted.headers)


def test_a_key_can_be_replaced(settings: Settings, receiver: HookReceiver) -> None:
    both = {"url": receiver.url, "secret": [KEY, OTHER_KEY]}
    settings.PROCESSION_NOTICES = {"pager": both}
    posted = posted_by(receiver)

    for key in (KEY, OTHER_KEY):
        assert Webhook(key).verify(posted.body, posted.headers)


def test_hostile_texts_are_json(receiver: HookReceiver) -> None:
    evil = HOSTILE.replace("\x00", "")[:100]
    posted = posted_by(receiver, correlation_key=evil)

    [item] = json.loads(posted.body)["data"]["items"]
    assert item["correlation_key"].startswith("evil\r\nBcc")
    assert "\n" not in item["text"]


@cases("status", 301, 307, 400, 404, 500, 503)
def test_what_is_refused_keeps_its_id(status: int, receiver: HookReceiver) -> None:
    receiver.posted.clear()
    receiver.answers = [(status, {"Location": receiver.url})]
    assert told_of().error == f"the receiver answered {status}"
    due_now()
    assert [outcome.error for outcome in deliver()] == [""]

    first, second = receiver.posted
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert Notice.objects.get().attempt == 2


def test_a_receiver_that_is_gone_gets_nothing_more(receiver: HookReceiver) -> None:
    receiver.answers = [(410, {})]
    told_of()

    notice = Notice.objects.get()
    assert (notice.status, notice.attempt) == ("given_up", 1)


@cases("after, seconds", ("120", 120), ("soon", 0), ("9" * 9, 0))
def test_a_busy_one_says_when(after: str, seconds: int, receiver: HookReceiver) -> None:
    receiver.answers = [(429, {"Retry-After": after})]

    assert told_of().after == seconds


def test_a_silent_receiver_is_given_up_on_for_now(
    receiver: HookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.notices.webhook.ANSWER_SECONDS", 0.1)
    receiver.silent.set()

    assert "timed out" in told_of().error


def test_the_log_has_neither_addresses_nor_secrets(settings: Settings) -> None:
    url = f"http://127.0.0.1:{free_port()}/{TOKEN}"
    settings.PROCESSION_NOTICES = {"pager": {"url": url, "secret": KEY}}
    told_of()

    stored = json.dumps(list(Notice.objects.values()), default=str)
    assert "refused" in stored
    for secret in (url, TOKEN, KEY):
        assert secret not in stored


OK, NO = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n"
ELSEWHERE = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"


@cases(
    "answer, endless, error",
    (OK, True, ""),
    (NO, True, "the receiver answered 500"),
    (b"", False, "RemoteDisconnected"),
    (b"HTTP/1.1 200", False, ""),
    (b"HTTP/1.1 2", False, "BadStatusLine"),
    (b"\x00\xff nonsense\n", False, "BadStatusLine"),
    (b"HTTP/1.1 200 OK\r\n" + 200 * b"A: b\r\n", False, "HTTPException"),
    *(
        (ELSEWHERE % (status, place), False, f"the receiver answered {status}")
        for status in (301, 302, 303, 307, 308)
        for place in (b"http://169.254.169.254/latest/", b"file:///etc/passwd", b"")
    ),
)
def test_whatever_a_receiver_answers_is_taken_or_not(
    answer: bytes, endless: bool, error: str, settings: Settings
) -> None:
    with Answering(answer, endless) as port:
        pager = {"url": f"http://127.0.0.1:{port}/", "secret": KEY}
        settings.PROCESSION_NOTICES = {"pager": pager}
        said = told_of().error

    assert said.startswith(error)
    assert bool(said) == bool(error)


# A channel of the project's own


@cases(
    "given",
    {"headers": {"Authorization": f"Bearer {TOKEN}"}},
    {"tokens": [TOKEN, ("more", {TOKEN})]},
    {"token": TOKEN.encode()},
    {"token": 'quo"ted\\xoxb'},
    {"token": "xoxb\nof two lines"},
    {"token": "pass'w\u00f6rd xoxb"},
)
def test_what_a_channel_is_made_with_is_not_repeated_however_it_is_given(
    given: dict[str, Any], settings: Settings
) -> None:
    room = {"channel": "tests.apps.own_channel.room.Repeating", "options": given}
    settings.PROCESSION_NOTICES = {"room": room}
    error = told_of().error

    assert error.startswith("ValueError")
    assert "xoxb" not in error


def declare_room(settings: Settings, file: Path, **more: str) -> None:
    options = {"file": str(file), "token": TOKEN, **more}
    room = {"channel": "tests.apps.own_channel.room.Room", "options": options}
    settings.PROCESSION_NOTICES = {"room": room}


def test_a_channel_of_the_project_s_own_is_given_the_message(
    settings: Settings, tmp_path: Path
) -> None:
    declare_room(settings, tmp_path / "room")
    told_of()

    said = json.loads((tmp_path / "room").read_text())
    assert (said["id"], said["number"]) == (str(Notice.objects.get().pk), 1)


@cases(
    "mood, error, hopeless",
    ("closed", "the room is … to …", True),
    ("busy", "come back later", False),
    ("broken", "RuntimeError: cannot log in as … really", False),
)
def test_what_it_raises_is_stored_without_its_secrets(
    mood: str, error: str, hopeless: bool, settings: Settings, tmp_path: Path
) -> None:
    declare_room(settings, tmp_path / "room", mood=mood)
    outcome = told_of()

    assert (outcome.error, outcome.hopeless) == (error, hopeless)


@cases("kind", Permanent, Retry)
def test_an_error_that_says_nothing_is_an_error(
    kind: type[Outcome], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(self: Room, message: NoticeMessage) -> None:
        raise kind(message=" \n")

    monkeypatch.setattr(Room, "send", send)
    declare_room(settings, Path("room"))
    outcome = told_of()

    assert (outcome.error, outcome.hopeless) == (kind.__name__, kind is Permanent)


# Where the console is


@cases(
    "urls, site, page",
    ("orchestrator.urls", "https://example.org", "https://example.org/processes/"),
    ("tests.apps.elsewhere.urls", "https://h/in", "https://h/in/ops/processes/"),
    ("tests.apps.elsewhere.nothing_there", "https://h", ""),
    ("orchestrator.urls", "", ""),
)
def test_links_lead_to_wherever_the_console_is(
    urls: str, site: str, page: str, settings: Settings, mail_server: MailServer
) -> None:
    settings.ROOT_URLCONF, settings.PROCESSION_SITE_URL = urls, site
    body = body_of(mailed_by(mail_server))

    assert (f"{page}{PROCESS}/" if page else "") in body
    assert ("http" in body) == bool(page)


@cases("site", "https://h", "https://h/branch", "https://h/branch/")
def test_a_path_in_front_of_the_whole_site_stands_once_in_a_link(
    site: str, settings: Settings
) -> None:
    settings.PROCESSION_SITE_URL = site
    with override_script_prefix("/branch/"):
        assert console_address("failures") == "https://h/branch/failures/"
    settings.FORCE_SCRIPT_NAME = "/branch"
    assert console_address("failures") == "https://h/branch/failures/"


def test_up_is_known_at_its_own_address_unless_it_has_another(
    settings: Settings, tmp_path: Path
) -> None:
    for given, known in (("", "http://127.0.0.1:8000"), ("https://h", "https://h")):
        programs = Programs(tmp_path, tmp_path, {"PROCESSION_SITE_URL": given})
        programs.set_site_url("http://127.0.0.1:8000")
        assert programs.environ["PROCESSION_SITE_URL"] == known
        (tmp_path / "logs").rmdir()


# The log of deliveries, and trying it out


def test_the_admin_has_the_log_with_links_to_the_processes(
    admin_client: Client, receiver: HookReceiver
) -> None:
    receiver.answers = [(500, {})]
    told_of(correlation_key="<script>alert(1)</script>")
    place, notice = "/admin/orchestrator", Notice.objects.get()
    listed = admin_client.get(f"{place}/notice/").text
    text = admin_client.get(f"{place}/notice/{notice.pk}/change/").text

    assert "the receiver answered 500" in listed
    assert "pager" in listed
    assert f'href="/processes/{PROCESS}/"' in text
    assert "&lt;script&gt;alert(1)" in text
    for absent in ("<script>alert(1)", KEY, receiver.url):
        assert absent not in text + listed
    for table in ("occurrence", "failuregroup", "queueoutage"):
        assert admin_client.get(f"{place}/{table}/").status_code == 200


def test_the_log_needs_no_console(settings: Settings, receiver: HookReceiver) -> None:
    settings.ROOT_URLCONF = "tests.apps.elsewhere.nothing_there"
    happened(correlation_key="<b>A-1")
    happened(topics="queue", queue="mail", state="dead", process_id=None)
    [notice] = gathered()
    text = NoticeAdmin(Notice, admin.site).said(notice)

    assert all(said in text for said in ("&lt;b&gt;A-1", "the queue mail"))
    assert "href" not in text


def test_the_metrics_say_that_somebody_is_not_reached(receiver: HookReceiver) -> None:
    happened()
    gathered()
    untaken = [figures().untaken_notices]
    receiver.answers = [(500, {})]
    for _ in range(2):  # the second time it is taken
        deliver()
        untaken.append(figures().untaken_notices)
        due_now()
    two_days_ago = timezone.now() - timedelta(days=2)
    for change in ({"status": "given_up"}, {"settled_at": two_days_ago}):
        Notice.objects.update(**change)
        untaken.append(figures().untaken_notices)

    assert untaken == [0, 1, 0, 1, 0]


def test_whoever_wants_to_know_can_try_it(
    settings: Settings,
    receiver: HookReceiver,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    declare_room(settings, tmp_path / "room", mood="broken")
    settings.PROCESSION_NOTICES["pager"] = {"url": receiver.url, "secret": KEY}
    with pytest.raises(SystemExit, match=r"^1$"):
        call_command("notices", "--try")

    assert capsys.readouterr().out.splitlines() == [
        "room  not told: RuntimeError: cannot log in as … really",
        "pager  told",
    ]
    assert len(receiver.posted) == 1
    assert not Notice.objects.exists()


def test_as_many_as_an_exit_code_counts_are_not_told_and_it_is_no_success(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = {"url": "https://pager.example.org/", "secret": KEY}
    settings.PROCESSION_NOTICES = {f"pager-{number}": way for number in range(256)}
    failed = send_attempt.SendingOutcome("no")
    monkeypatch.setattr(notices, "send_notice", lambda notice, recipient: failed)

    with pytest.raises(SystemExit, match=r"^1$"):
        call_command("notices", "--try", stdout=StringIO())


def test_an_attempt_has_less_time_than_its_claim() -> None:
    assert timedelta(seconds=send_attempt.SECONDS) < outbox.LEASE


@pytest.mark.usefixtures("receiver")
def test_what_is_told_of_a_person_is_their_name(operator: User) -> None:
    happened(message=f"{operator}: {HOSTILE[:20]}".replace("\x00", ""))

    [notice] = gathered()
    assert notice.items[0]["message"].startswith("operator: evil")
