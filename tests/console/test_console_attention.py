"""What every page says of work without workers, and of what needs a person: true, and the same as the lists."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.attention import problem_counts
from monitoring.attention.health import health
from monitoring.probes import pulse
from monitoring.probes.pulse import Beat
from monitoring.views.page import UNHEARD
from orchestrator import start_process
from orchestrator.models import (
    BulkOperation,
    BulkStatus,
    Definition,
    InboxEvent,
    Notice,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.browser.samples import orders
from tests.conftest import of, permissions
from tests.services import emptying
from tests.services.bulk import begun
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.hired import hire
from tests.services.placing import placed
from tests.services.reading import BY_SCRIPT, between

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

NOBODY = "No worker lives"
CALM = "Nothing needs a person"
LINK = re.compile(r'<a href="([^"]+)">([^<]+)</a>')
FIGURE = re.compile(r'<a href="([^"]+)" data-kind="(\w+)">\s*<b[^>]*>([\d,+]+)</b>')
ENTRY = re.compile(
    r'<a href="([^"]+)"[^>]*>\s*<span>[^<]+</span>\s*<span class="num[^>]*>(\d+)<'
)


def needs(page: str) -> dict[str, tuple[str, int]]:
    """What the first page says needs a person: of each kind there is any of the address of the list, and how many."""
    return {
        kind: (unescape(address), int(number))
        for address, kind, number in FIGURE.findall(
            between(page, 'id="needs"', "</ul>")
        )
        if number != "0"
    }


def lines(page: str) -> str:
    """What the first page says of each definition."""
    return between(page, 'id="definitions"', "</tbody>")


def rows(page: str) -> int:
    """How many things a list says that it has: each row is one, or a group of so many."""
    page = page.partition('id="volume"')[0]  # what there has been of each type
    body = between(page, "<tbody", "</tbody>")
    grouped = re.findall(r'data-number="(\d+)"', body)
    return sum(map(int, grouped)) if grouped else body.count("<tr")


# Workers


@cases(
    "address",
    *words(
        """/ /processes/ /waits/ /decisions/ /events/ /failures/ /definitions/order-listing/"""
    ),
)
def test_without_workers_every_page_says_so(address: str, read: Read) -> None:
    orders()
    assert NOBODY in read(address)

    hire()
    page = read(address)
    assert NOBODY not in page
    assert CALM not in page


def test_a_queue_with_work_and_without_a_worker_is_named(read: Read) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    InboxEvent.objects.update(queue="films")
    hire()
    page = read("/processes/")
    assert "No worker serves the queue films, where work is due." in page
    assert NOBODY not in page

    hire("films")

    assert "No worker serves" not in read("/processes/")


@cases("seconds, missed", (9, False), (60, True))
def test_a_worker_is_missed_after_a_minute_and_an_open_page_hears_of_it(
    seconds: int, missed: bool, read: Read
) -> None:
    hire(seconds_ago=seconds)

    assert (NOBODY in read("/")) is missed
    parts = read("/?since=1", **BY_SCRIPT)
    said = between(parts, 'hx-target="#headline"', "</hx-partial>")
    assert (NOBODY in said) is missed


@cases(
    "status, minutes, told",
    ("sending", 1, False),  # it is tried again at once
    ("sending", 3, True),
    ("given_up", 60, True),
    ("given_up", 60 * 25, False),
    ("sent", 60, False),
)
def test_notices_that_do_not_get_out_are_a_problem(
    status: str, minutes: int, told: bool, read: Read
) -> None:
    hire()
    at = timezone.now() - timedelta(minutes=minutes)
    over = {"wake_at": None, "settled_at": at}
    left = {"wake_at": timezone.now()} if status == "sending" else over
    error = "" if status == "sent" else "the mail server is away"
    about: dict[str, Any] = {"recipient": "duty", "created_at": at, "begun_at": at}
    Notice.objects.create(status=status, error=error, **about, **left)

    page = read("/")

    assert ("1 notice to duty is not delivered since" in page) is told
    assert (CALM in page) is not told


# What needs a person


def test_nothing_needs_a_person_where_that_is_so(read: Read) -> None:
    placed(Destination.INTERNAL)
    hire()

    page = read("/")

    assert page.count(CALM) == 1
    assert "nothing needs a person" in lines(page)
    assert needs(page) == {}


def overdue() -> None:
    placed(Destination.EXTERNAL)
    at = timezone.now() - timedelta(seconds=90)
    StepRun.objects.filter(finished_at=None).update(wake_at=at)


NOW = timezone.now()


def stalled() -> None:
    """A process that says it goes on, and of which nothing will be done."""
    start_process(Inquiry, Inquiry.Input("T-1"))
    InboxEvent.objects.update(wake_at=None)
    at = timezone.now() - timedelta(minutes=5)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    assert ProcessInstance.objects.update(status="running", changed_at=at)


@cases(
    "happens, changed, said",
    (orders, {}, ("failures", 2)),
    (inquiry, {}, ("decisions", 1)),
    (inquiry, {"status": "paused", "paused_at": NOW}, ("paused", 1)),
    (inquiry, {"escalation_level": 1, "escalated_at": NOW}, ("escalated", 1)),
    (overdue, {}, ("overdue", 1)),
    (inquiry, {"status": "retrying"}, ("retrying", 1)),
    (stalled, {}, ("stalled", 1)),
)
def test_s1_1_every_number_is_that_of_the_list_it_opens(
    happens: Callable[[], Any], changed: Any, said: tuple[str, int], read: Read
) -> None:
    happens()
    if changed:
        ProcessInstance.objects.update(**changed)
    hire()

    page = read("/")

    found = needs(page)
    assert found[said[0]][1] == said[1]
    for kind, (address, number) in found.items():
        assert rows(read(address)) == number, kind
    opened = [link for link in LINK.findall(lines(page)) if link[1][0].isdecimal()]
    for address, there in opened:
        assert rows(read(unescape(address))) == int(there.split()[0]), there
    assert 0 < lines(page).count("the oldest") < len(opened)
    emptying.empty(connection)  # the invariants hold of what the engine writes


@pytest.fixture
def unexpected() -> Iterator[None]:
    """An event that its process did not take."""
    placed(Destination.INTERNAL)
    hire()
    event = InboxEvent.objects.latest("pk")
    rows = InboxEvent.objects.filter(pk=event.pk)
    rows.update(verdict="unexpected")
    yield
    rows.update(verdict=event.verdict)


@pytest.mark.usefixtures("unexpected")
def test_a_definition_has_the_events_that_its_processes_left(read: Read) -> None:
    inquiry()
    line = between(read("/"), 'id="definition-order-listing"', "</tr>")

    assert "nothing needs a person" not in line
    found = {text: unescape(address) for address, text in LINK.findall(line)}
    address = found["1 event that nothing took"]
    assert rows(read(address)) == 1
    assert rows(read(address.replace("order-listing", "helpdesk"))) == 0


@pytest.mark.usefixtures("unexpected")
def test_who_may_see_no_events_is_told_neither_of_any_nor_of_none(viewer: User) -> None:
    viewer.user_permissions.remove(permissions()["view_inboxevent"])

    page = of(viewer).read("/")

    assert "events" not in needs(page)
    assert CALM not in page
    assert page.count("Nothing that you may see needs a person") == 1


def test_what_is_overdue_is_so_by_the_clock_of_the_database(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web host whose clock is wrong neither calls anybody for nothing nor hides what is late."""
    inquiry()
    soon, ahead = (timezone.now() + timedelta(minutes=n) for n in (5, 60))
    StepRun.objects.filter(finished_at=None).update(wake_at=soon)
    hire()
    monkeypatch.setattr("django.utils.timezone.now", lambda: ahead)

    assert "overdue" not in needs(read("/"))


def test_each_number_in_the_menu_is_of_its_list(read: Read, operator: User) -> None:
    assert "/operations/?" not in read("/")
    orders()
    orders()
    inquiry()
    hire()
    ended = begun(operator, {"status": "failed"}, 2)
    completed = {"status": BulkStatus.COMPLETED, "finished_at": NOW}
    BulkOperation.objects.filter(pk=ended.pk).update(**completed)
    begun(operator, {"status": "failed"}, 2)

    entries = ENTRY.findall(read("/").partition('id="nav"')[2])

    assert len(entries) == 6
    for address, number in entries:
        assert rows(read(unescape(address))) == int(number) > 0, address


PART = re.compile(r'<li class="is-(\w+)" data-part="([^"]+)">(.*?)</li>', re.DOTALL)


def running(page: str) -> dict[str, tuple[str, str]]:
    """How the first page shows each part of what runs it: its state and its words, in their order."""
    return {
        name: (state, " ".join(re.sub(r"<[^>]+>", " ", words).split()))
        for state, name, words in PART.findall(page)
    }


def test_s1_3_the_first_page_has_each_queue_its_workers_and_due_work(
    read: Read,
) -> None:
    shown = running(read("/"))
    idle = ("unknown", "queue default no worker · nothing due")
    assert (shown["queue-default"], shown["workers"][0]) == (idle, "bad")

    hire()
    place_order(Destination.INTERNAL, "50 MWh")
    late = timezone.now() - timedelta(seconds=20)
    due = InboxEvent.objects.filter(wake_at__isnull=False)
    assert due.update(queue="mail", wake_at=late) == 1
    shown = running(read("/"))
    assert next(iter(shown)) == "queue-mail"  # the one that nobody serves
    states = {name: state for name, (state, _words) in shown.items()}
    expected = {"queue-mail": "bad", "queue-default": "well", "sweep": "well"}
    assert states | expected == states
    served = "no worker · 1 due, the oldest 2[0-9] s ago"
    assert re.search(served, shown["queue-mail"][1])
    assert shown["workers"] == ("well", "workers 1 lives · heartbeat 0 s ago")
    assert re.search("oldest due work 2[0-9] s ago", shown["due"][1])

    hire("mail")
    hire("mail", seconds_ago=60)
    shown = running(read("/"))
    assert (shown["queue-mail"][0], shown["workers"][0]) == ("well", "late")
    assert "2 live · 1 silent" in shown["workers"][1]
    assert running(read("/?since=", **BY_SCRIPT)).keys() == shown.keys()


def test_s1_1_what_needs_a_person_comes_first_and_an_open_page_keeps_its_places(
    read: Read,
) -> None:
    def names(page: str) -> list[str]:
        return re.findall(r'id="definition-([\w-]+)"', page)

    hire()
    inquiry()
    placed(Destination.INTERNAL)
    before = names(read("/"))
    assert before == [Inquiry.name, "order-listing"]

    orders()  # of which one fails: that is more urgent than to be asked
    assert names(read("/")) == ["order-listing", Inquiry.name]

    part = read(f"/?since=&rows={','.join(before)}", **BY_SCRIPT)
    assert names(part) == before
    assert "2 failures" in part


def test_where_more_are_there_than_are_looked_at_each_definition_may_have_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("one", "two"):
        place_order(Destination.BOTH, name)
    run()
    monkeypatch.setattr(problem_counts, "CAP", 1)

    found = problem_counts.problems_by_definition(health(), ["order-listing"])

    assert str(found["order-listing"]["failures"].number) == "1+"
    assert str(found[""]["failures"].number) == "2"


def test_the_first_page_has_any_number_of_definitions(read: Read) -> None:
    """SQLite reads no more than 500 parts in one statement."""
    orders()
    row = Definition.objects.get(name="order-listing")
    same = {"kind": row.kind, "graph": row.graph, "created_at": row.created_at}
    Definition.objects.bulk_create(
        Definition(name=f"kind-{n}", version=1, fingerprint=f"{n:064x}", **same)
        for n in range(501)
    )

    assert "order-listing" in lines(read("/"))


# Open pages


def test_live_parts_say_that_open_pages_hear_of_nothing(
    viewing: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str | None:
        asked = viewing.get("/processes/?since=", headers={"HX-Request": "true"})
        return asked.headers.get(UNHEARD)

    before = said()
    monkeypatch.setattr(pulse.live, "beat", lambda: Beat(up=False))
    assert (before, said()) == (None, "1")
