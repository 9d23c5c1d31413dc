"""S10: one box that finds what a text could mean, and lists as files of exactly what they match."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.lists import search_box
from monitoring.lists.processes import pages
from monitoring.lists.processes.filters import Filters
from orchestrator import send_event
from orchestrator.exceptions import Permanent
from orchestrator.models import InboxEvent, Incident, IssuedCommand, ProcessInstance
from orchestrator.testing import failing, run
from tests.apps.process_managers.handlers import greet_depot
from tests.apps.process_managers.messages import DepotOpened
from tests.browser.samples import HARMFUL
from tests.conftest import permissions
from tests.services.bulk import begun
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.reading import planted, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Orders = dict[str, ProcessInstance]


@pytest.fixture(scope="module", autouse=True)
def orders(module_db: None) -> dict[str, ProcessInstance]:
    """One that has completed and one that has failed, and an event that nothing took."""
    for destination, key in ((Destination.INTERNAL, "A-1"), (Destination.BOTH, "A-2")):
        place_order(destination, "50 MWh", key)
    run()
    sent_by("exchange")
    run()
    return {row.correlation_key: row for row in ProcessInstance.objects.all()}


def sent_by(source: str) -> None:
    """Send an event that nothing takes."""
    lost = ListedOnInternal("B-9")
    send_event(lost, id="lost-1", source=source, correlation_key="B-9")


NOTHING = "Nothing is called so."


def kinds(page: str) -> list[str]:
    part = page.partition('id="found"')[2]
    return [unescape(name) for name in re.findall(r"<h2>(.*?)</h2>", part)]


def test_s10_1_what_names_one_thing_leads_to_it(
    orders: Orders, ask: Read, operator: User
) -> None:
    done, failed = orders["A-1"], orders["A-2"]
    run, command = failed.step_runs.latest("pk"), failed.commands.latest("pk")
    first = failed.commands.earliest("revision")
    lost = InboxEvent.objects.get(event_id="lost-1")
    operation = begun(operator, {"status": "failed"}, 1)
    incident = failed.incidents.get()
    words = incident.message[5:25]
    page, cause = f"/processes/{failed.pk}/", f"/failures/{incident.fingerprint}/"
    leads = {
        f"steprun:{run.pk}": page,
        f"issuedcommand:{command.pk}": page,
        str(first.pk): f"{page}?before={first.revision + 1}",
        **dict.fromkeys(
            ("A-1", " A-1 ", str(done.pk), done.pk.hex), f"/processes/{done.pk}/"
        ),
        "A-": "/processes/?q=A-",
        "lost-1": f"/events/?q=lost-1#event-{lost.pk}",
        str(operation.pk): f"/operations/{operation.pk}/",
        words: cause,
        words.upper(): cause,
        incident.message[:3]: "/failures/",
        "": "/processes/",
    }

    for text, place in leads.items():
        assert ask(text).startswith(place), text
    assert str(failed.pk) in ask(f" InboxEvent:{failed.events.latest('pk').pk}")


def test_s10_1_names_summaries_and_beginnings_of_ids_are_found(
    orders: Orders, ask: Read
) -> None:
    done = orders["A-1"]
    ProcessInstance.objects.filter(pk=done.pk).update(summary="Coal for Mrs Sato")

    assert ask("order-lis") == "/definitions/order-listing/"
    page = ask(str(done.pk)[:6])  # which both orders have: it is the hour
    assert kinds(page) == ["Processes whose id begins so"]
    assert f'href="/processes/{done.pk}/"' in page
    for words in ("mrs sato", "Coal"):
        assert ask(words) == f"/processes/{done.pk}/"
    for nothing in ("order-listings", str(uuid4())[:9], "co"):
        assert NOTHING in ask(nothing), nothing


def test_s10_1_what_is_spelled_nearly_so_is_shown_and_nobody_is_sent_there(
    ask: Read,
) -> None:
    """A key and a word of a summary, with a letter too many, another one, or two of them in the wrong order."""
    place_order(Destination.INTERNAL, "50 MWh", "ORDER-1972")
    run()
    done = ProcessInstance.objects.get(correlation_key="ORDER-1972")
    ProcessInstance.objects.filter(pk=done.pk).update(summary="Coal for Mrs Satoyama")
    for words in ("satoyma", "Satoyamma", "sotayama", "order-1792", "ORDER-19722"):
        page = ask(words)
        kind = "Processes with a similar key, or a similar word in their summary"
        assert kinds(page) == [kind], words
        assert f'href="/processes/{done.pk}/"' in page
        assert "They are looked for among the newest 3,000 processes." in page
    for nothing in ("sa", "yamamoto", "x" * 100):
        assert NOTHING in ask(nothing), nothing


def test_s10_1_resolved_failures_are_found_by_their_words(
    orders: Orders, ask: Read
) -> None:
    failure = orders["A-2"].incidents.get()
    words = failure.message[5:20]
    cause = f"/failures/{failure.fingerprint}/"
    assert ask(words) == cause
    Incident.objects.filter(pk=failure.pk).update(resolved_at=timezone.now())
    assert ask(words) == cause
    mine = frozenset({"support-inquiry"})
    assert search_box.Lookup(words, False, mine).found() == []
    Incident.objects.filter(pk=failure.pk).update(resolved_at=None)


def test_s10_1_a_reader_of_another_definition_finds_no_names_and_no_summaries(
    orders: Orders,
) -> None:
    ProcessInstance.objects.update(summary="Coal for Mrs Sato")
    mine = frozenset({"support-inquiry"})
    texts = ("order-listing", "Mrs Sato", str(orders["A-1"].pk)[:8])
    for text in texts:
        assert search_box.Lookup(text, False, mine).found() == [], text


def test_s10_1_nothing_found_says_what_can_be_found(orders: Orders, ask: Read) -> None:
    jobs = ("steprun:0", "steprun:x", f"steprun:{'9' * 40}", "steprun:", "bulk:1")
    two_letters = orders["A-2"].incidents.get().message[:2]
    for text in ("nowhere to be found", str(uuid4()), two_letters, *jobs):
        page = ask(text)
        assert kinds(page) == []
        assert NOTHING in page, text
    assert "an event, a command and an operation by its id" in page


def test_s10_1_a_handlers_command_leads_to_its_failure_if_any(ask: Read) -> None:
    def command(number: int) -> Any:
        send_event(DepotOpened("east"), id=f"{number}", source="depot")
        run()
        return IssuedCommand.objects.filter(instance=None).latest("issued_at")

    assert NOTHING in ask(str(command(1).pk))
    with failing(greet_depot, Permanent("no room")):
        failed = command(2)
    there = f"/failures/{Incident.objects.get(command=failed).fingerprint}/"
    assert ask(str(failed.pk)) == ask(f"issuedcommand:{failed.pk}") == there


def test_s10_1_several_candidates_are_shown_by_kind(orders: Orders, ask: Read) -> None:
    sent_by("another")  # the same id of two senders leads to both
    assert ask("lost-1") == "/events/?q=lost-1"
    send_event(ListedOnInternal("A-1"), id="A-1", source="exchange")

    page = ask("A-1")

    assert kinds(page) == ["Processes", "Events"]
    assert f'href="/processes/{orders["A-1"].pk}/"' in page
    assert 'href="/events/?q=A-1#event-' in page


def test_s10_1_who_may_not_look_at_events_finds_none(ask: Read, operator: User) -> None:
    operator.user_permissions.remove(permissions()["view_inboxevent"])

    assert NOTHING in ask("lost-1")


@cases("text", *HARMFUL, "\0", "%", "_", "'", "9" * 300)
def test_s10_1_a_harmful_text_is_a_text(text: str, ask: Read) -> None:
    assert planted(ask(text)) == []


def test_s10_1_more_causes_than_are_shown_are_said(orders: Orders, ask: Read) -> None:
    first = Incident.objects.get(instance=orders["A-2"])
    message = first.message
    for number in range(search_box.CAUSES + 1):
        first.pk = None
        first.message, first.fingerprint = f"{message} {number}", f"cause-{number}"
        first.save()

    page = ask(message)

    assert len(re.findall(r'href="/failures/[^"]+/"', page)) == search_box.CAUSES
    assert "There are more: write more of it." in page


# S10.5


@cases(
    "query, expected",
    ("", ["A-2", "A-1"]),
    ("?status=failed", ["A-2"]),
    ("?q=A-1", ["A-1"]),
    ("?status=failed&q=A-", ["A-2"]),
    ("?definition=other", []),
    ("?step=Completed", ["A-1"]),
)
def test_s10_5_the_file_has_exactly_what_the_list_has(
    query: str, expected: list[str], orders: Orders, operating: Client
) -> None:
    page = unescape(operating.read(f"/processes/{query}"))
    assert f'href="/processes/export.csv{query or "?"}"' in page
    for form in ("csv", "jsonl"):
        rows = rows_of(operating, f"/processes/export.{form}{query}")
        assert [row["key"] for row in rows] == expected
        for row in rows:
            process = orders[row["key"]]
            found = (row["process"], row["status"], row["started"])
            started = process.started_at.isoformat()
            assert found == (str(process.pk), process.status, started)


@cases("batch", 1, 2, 500)
def test_s10_5_it_is_read_in_parts_without_gap_or_repeat(
    batch: int, operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BATCH", batch)

    for query, keys in (("", ["A-2", "A-1"]), ("?status=completed", ["A-1"])):
        rows = rows_of(operating, f"/processes/export.jsonl{query}")
        assert [row["key"] for row in rows] == keys


def test_s10_5_conditions_that_cannot_be_understood_are_no_file_and_it_says_why(
    operating: Client,
) -> None:
    said = Filters(where="amount >").mistake
    assert said
    given = {"where": "amount >"}
    assert operating.read("/processes/export.csv", given, status=400) == said
    operating.read("/processes/export.xml", status=404)  # nor is there another form
