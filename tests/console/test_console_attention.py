"""What every page says of work without workers, and of what needs a person: true, and the same as the lists."""

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries import attention
from monitoring.queries.health import health
from orchestrator import start_process
from orchestrator.models import (
    BulkOperation,
    BulkStatus,
    Definition,
    InboxEvent,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.processes import Inquiry
from tests.browser.samples import orders
from tests.services import emptying
from tests.services.bulk import begun
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.hired import hire

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
    part = page.partition('id="needs"')[2].partition("</ul>")[0]
    return {
        kind: (unescape(address), int(number))
        for address, kind, number in FIGURE.findall(part)
        if number != "0"
    }


def lines(page: str) -> str:
    """What the first page says of each definition."""
    return page.partition('id="definitions"')[2].partition("</tbody>")[0]


def rows(page: str) -> int:
    """How many things a list says that it has: each row is one, or a group of so many."""
    page = page.partition('id="volume"')[0]  # what there has been of each type
    body = page.partition("<tbody")[2].partition("</tbody>")[0]
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
    assert NOBODY not in read(address)
    assert CALM not in read(address)


def test_an_open_page_hears_of_it(read: Read) -> None:
    orders()
    fragments = read("/?since=1", **{"HX-Request": "true"})

    said = fragments.partition('hx-target="#headline"')[2].partition("</hx-partial>")[0]
    assert NOBODY in said


def test_a_queue_with_work_and_without_a_worker_is_named(read: Read) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    InboxEvent.objects.update(queue="films")
    hire()
    page = read("/processes/")
    assert "No worker serves the queue films, where work is due." in page
    assert NOBODY not in page

    hire("films")

    assert "No worker serves" not in read("/processes/")


def test_a_worker_that_is_slow_to_say_that_it_lives_is_not_missed(read: Read) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    hire(seconds_ago=9)

    assert NOBODY not in read("/")


def test_a_worker_that_has_been_silent_for_a_minute_is(read: Read) -> None:
    hire(seconds_ago=60)

    assert NOBODY in read("/")


# What needs a person


def test_nothing_needs_a_person_where_that_is_so(read: Read) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    run()
    hire()

    page = read("/")

    assert page.count(CALM) == 1
    assert "nothing needs a person" in lines(page)
    assert needs(page) == {}


def asking() -> ProcessInstance:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def overdue() -> None:
    place_order(Destination.EXTERNAL, "50 MWh")
    run()
    at = timezone.now() - timedelta(seconds=90)
    StepRun.objects.filter(finished_at=None).update(wake_at=at)


def decision() -> None:
    asking()


def paused() -> None:
    asking()
    ProcessInstance.objects.update(status="paused", paused_at=timezone.now())


def escalated() -> None:
    asking()
    ProcessInstance.objects.update(escalation_level=1, escalated_at=timezone.now())


def retrying() -> None:
    asking()
    ProcessInstance.objects.update(status="retrying")


def stalled() -> None:
    """A process that says it goes on, and of which nothing will be done."""
    start_process(Inquiry, Inquiry.Input("T-1"))
    InboxEvent.objects.update(wake_at=None)
    at = timezone.now() - timedelta(minutes=5)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    assert ProcessInstance.objects.update(status="running", changed_at=at)


@cases(
    "happens, said",
    (orders, ("failures", 2)),
    (decision, ("decisions", 1)),
    (paused, ("paused", 1)),
    (escalated, ("escalated", 1)),
    (overdue, ("overdue", 1)),
    (retrying, ("retrying", 1)),
    (stalled, ("stalled", 1)),
)
def test_s1_1_every_number_is_that_of_the_list_it_opens(
    happens: Callable[[], object], said: tuple[str, int], read: Read
) -> None:
    happens()
    hire()

    page = read("/")

    found = needs(page)
    assert found[said[0]][1] == said[1]
    for kind, (address, number) in found.items():
        assert rows(read(address)) == number, kind
    opened = 0
    for address, said_there in LINK.findall(lines(page)):
        if said_there[0].isdecimal():
            opened += 1
            number = int(said_there.split()[0])
            assert rows(read(unescape(address))) == number, said_there
    assert 0 < lines(page).count("the oldest") < opened
    emptying.empty(connection)  # the invariants hold of what the engine writes


def test_who_may_not_see_events_is_told_of_none(client: Client, viewer: User) -> None:
    orders()
    viewer.user_permissions.filter(codename="view_inboxevent").delete()
    client.force_login(User.objects.get(pk=viewer.pk))

    assert "events" not in needs(client.read("/"))


def unexpected() -> InboxEvent:
    """An event that its process did not take."""
    place_order(Destination.INTERNAL, "50 MWh")
    run()
    event = InboxEvent.objects.latest("pk")
    InboxEvent.objects.filter(pk=event.pk).update(verdict="unexpected")
    return event


def test_a_definition_has_the_events_that_its_processes_did_not_take(
    read: Read,
) -> None:
    event = unexpected()
    asking()
    hire()
    line = read("/").partition('id="definition-order-listing"')[2]
    line = line.partition("</tr>")[0]

    assert "nothing needs a person" not in line
    found = {text: unescape(address) for address, text in LINK.findall(line)}
    address = found["1 event that nothing took"]
    assert rows(read(address)) == 1
    assert rows(read(address.replace("order-listing", "helpdesk"))) == 0
    InboxEvent.objects.filter(pk=event.pk).update(verdict=event.verdict)


def test_who_may_not_see_events_is_not_told_that_there_are_none(
    client: Client, viewer: User
) -> None:
    event = unexpected()
    hire()
    viewer.user_permissions.filter(codename="view_inboxevent").delete()
    client.force_login(User.objects.get(pk=viewer.pk))

    page = client.read("/")

    assert CALM not in page
    assert page.count("Nothing that you may see needs a person") == 1
    InboxEvent.objects.filter(pk=event.pk).update(verdict=event.verdict)


def test_what_is_overdue_is_so_by_the_clock_of_the_database(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web host whose clock is wrong neither calls anybody for nothing nor hides what is late."""
    asking()
    StepRun.objects.filter(finished_at=None).update(
        wake_at=timezone.now() + timedelta(minutes=5)
    )
    hire()
    ahead = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: ahead)

    assert "overdue" not in needs(read("/"))


def test_every_number_in_the_menu_is_that_of_the_list_it_opens(
    read: Read, operator: User
) -> None:
    assert "/operations/?" not in read("/")
    orders()
    orders()
    asking()
    hire()
    ended = begun(operator, {"status": "failed"}, 2)
    BulkOperation.objects.filter(pk=ended.pk).update(status=BulkStatus.COMPLETED)
    begun(operator, {"status": "failed"}, 2)

    entries = ENTRY.findall(read("/").partition('id="nav"')[2])

    assert len(entries) == 6
    for address, number in entries:
        assert int(number) > 0
        assert rows(read(unescape(address))) == int(number), address


PART = re.compile(r'<li class="is-(\w+)" data-part="([^"]+)">(.*?)</li>', re.DOTALL)


def running(page: str) -> dict[str, tuple[str, str]]:
    """How the first page shows each part of what runs it: its state and its words, in their order."""
    return {
        name: (state, " ".join(re.sub(r"<[^>]+>", " ", words).split()))
        for state, name, words in PART.findall(page)
    }


def test_s1_3_the_first_page_has_each_queue_with_its_workers_and_what_is_due(
    read: Read,
) -> None:
    shown = running(read("/"))
    assert shown["queue-default"] == (
        "unknown",
        "queue default no worker · nothing due",
    )
    assert shown["workers"][0] == "bad"

    hire()
    place_order(Destination.INTERNAL, "50 MWh")
    late = timezone.now() - timedelta(seconds=20)
    due = InboxEvent.objects.filter(wake_at__isnull=False)
    assert due.update(queue="mail", wake_at=late) == 1
    shown = running(read("/"))
    assert next(iter(shown)) == "queue-mail"  # the one that nobody serves
    state, words = shown["queue-mail"]
    assert state == "bad"
    assert re.search("no worker · 1 due, the oldest 2[0-9] s ago", words)
    assert shown["queue-default"][0] == "well"
    assert shown["workers"] == ("well", "workers 1 lives · heartbeat 0 s ago")
    assert shown["sweep"][0] == "well"
    assert re.search("oldest due work 2[0-9] s ago", shown["due"][1])

    hire("mail")
    hire("mail", seconds_ago=60)
    shown = running(read("/"))
    assert shown["queue-mail"][0] == "well"
    assert shown["workers"][0] == "late"
    assert "2 live · 1 silent" in shown["workers"][1]
    part = read("/?since=", **{"HX-Request": "true"})
    assert running(part).keys() == shown.keys()


def test_s1_1_what_needs_a_person_comes_first_and_an_open_page_keeps_its_places(
    read: Read,
) -> None:
    def names(page: str) -> list[str]:
        return re.findall(r'id="definition-([\w-]+)"', page)

    hire()
    asking()
    place_order(Destination.INTERNAL, "50 MWh")
    run()
    asked, completed = Inquiry.name, "order-listing"
    before = names(read("/"))
    assert before == [asked, completed]

    orders()  # of which one fails: that is more urgent than to be asked
    assert names(read("/")) == [completed, asked]

    part = read(f"/?since=&rows={','.join(before)}", **{"HX-Request": "true"})
    assert names(part) == before
    assert "2 failures" in part


def test_where_more_are_there_than_are_looked_at_each_definition_may_have_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("one", "two"):
        place_order(Destination.BOTH, name)
    run()
    monkeypatch.setattr(attention, "CAP", 1)

    found = attention.needs(health(), ["order-listing"])

    assert str(found.by_definition["order-listing"]["failures"].number) == "1+"
    assert str(found.in_all["failures"].number) == "2"


def test_the_first_page_has_any_number_of_definitions(read: Read) -> None:
    """SQLite reads no more than 500 parts in one statement."""
    orders()
    row = Definition.objects.get(name="order-listing")
    Definition.objects.bulk_create(
        Definition(
            name=f"kind-{number}",
            version=1,
            kind=row.kind,
            fingerprint=f"{number:064x}",
            graph=row.graph,
            created_at=row.created_at,
        )
        for number in range(501)
    )

    assert "order-listing" in lines(read("/"))
