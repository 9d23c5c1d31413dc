"""S10: one box that finds what a text could mean, and lists as files of exactly what they match."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.exports import BEGINNING
from monitoring.queries import find
from monitoring.queries.instances import pages
from monitoring.queries.instances.filters import Filters
from orchestrator import send_event
from orchestrator.exceptions import Permanent
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
)
from orchestrator.testing import failing, run
from tests.apps.process_managers.handlers import greet_depot
from tests.apps.process_managers.messages import DepotOpened
from tests.browser.samples import HARMFUL
from tests.services.bulk import begun
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Ask = Callable[[str], str]
"""Gives the page that a text leads to, or where it leads on to."""


@pytest.fixture(scope="module", autouse=True)
def orders(module_db: None) -> dict[str, ProcessInstance]:
    """One that has completed and one that has failed, and an event that nothing took."""
    for destination, key in ((Destination.INTERNAL, "A-1"), (Destination.BOTH, "A-2")):
        place_order(destination, "50 MWh", key)
    run()
    send_event(
        ListedOnInternal("B-9"), id="lost-1", source="exchange", correlation_key="B-9"
    )
    run()
    return {row.correlation_key: row for row in ProcessInstance.objects.all()}


@pytest.fixture
def ask(operating: Client) -> Ask:
    def answered(text: str) -> str:
        answer = operating.get(f"/find/?q={quote(text)}")
        assert answer.status_code in (200, 302)
        return answer.get("Location") or answer.content.decode()

    return answered


def kinds(page: str) -> list[str]:
    part = page.partition('id="found"')[2]
    return [unescape(name) for name in re.findall(r"<h2>(.*?)</h2>", part)]


def test_s10_1_what_names_one_thing_leads_to_it(
    orders: dict[str, ProcessInstance], ask: Ask, operator: User
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


def test_s10_1_nothing_found_says_what_can_be_found(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    jobs = ("steprun:0", "steprun:x", f"steprun:{'9' * 40}", "steprun:", "bulk:1")
    two_letters = orders["A-2"].incidents.get().message[:2]
    for text in ("nowhere to be found", str(uuid4()), two_letters, *jobs):
        page = ask(text)
        assert kinds(page) == []
        assert "Nothing is called so." in page, text
    assert "an event, a command and an operation by its id" in page


def test_s10_1_the_same_id_of_two_senders_leads_to_both(ask: Ask) -> None:
    lost = ListedOnInternal("B-9")
    send_event(lost, id="lost-1", source="another", correlation_key="B-9")

    assert ask("lost-1") == "/events/?q=lost-1"


@cases("name", "{}", "issuedcommand:{}")
def test_s10_1_a_command_of_an_event_handler_leads_to_its_failure(
    name: str, ask: Ask
) -> None:
    with failing(greet_depot, Permanent("no room")):
        send_event(DepotOpened("east"), id="1", source="depot")
        run()
    command = IssuedCommand.objects.filter(instance=None).latest("issued_at")

    there = ask(name.format(command.pk))

    assert there == f"/failures/{Incident.objects.get(command=command).fingerprint}/"


def test_s10_1_a_command_of_an_event_handler_that_did_not_fail_has_no_page(
    ask: Ask,
) -> None:
    send_event(DepotOpened("east"), id="1", source="depot")
    run()
    command = IssuedCommand.objects.filter(instance=None).latest("issued_at")

    assert "Nothing is called so." in ask(str(command.pk))


def test_s10_1_what_could_be_several_things_is_shown_by_kind(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    send_event(ListedOnInternal("A-1"), id="A-1", source="exchange")

    page = ask("A-1")

    assert kinds(page) == ["Processes", "Events"]
    assert f'href="/processes/{orders["A-1"].pk}/"' in page
    assert 'href="/events/?q=A-1#event-' in page


def test_s10_1_who_may_not_look_at_events_finds_none(ask: Ask, operator: User) -> None:
    operator.user_permissions.remove(Permission.objects.get(codename="view_inboxevent"))

    assert "Nothing is called so." in ask("lost-1")


@cases("text", *HARMFUL, "\0", "%", "_", "'", "9" * 300)
def test_s10_1_a_harmful_text_is_a_text(text: str, ask: Ask) -> None:
    page = ask(text)

    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_s10_1_more_causes_than_are_shown_are_said(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    first = Incident.objects.get(instance=orders["A-2"])
    for number in range(find.CAUSES + 1):
        Incident.objects.create(
            kind=first.kind,
            instance=first.instance,
            message=f"{first.message} {number}",
            fingerprint=f"cause-{number}",
            opened_at=first.opened_at,
        )

    page = ask(first.message)

    assert len(re.findall(r'href="/failures/[^"]+/"', page)) == find.CAUSES
    assert "There are more: write more of it." in page


# S10.5


def lines(client: Client, form: str, query: str = "") -> list[dict[str, str]]:
    answer = client.get(f"/processes/export.{form}{query}")
    assert answer.status_code == 200
    text = b"".join(answer).decode()
    if form == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    assert text.startswith(BEGINNING)
    return list(csv.DictReader(io.StringIO(text.removeprefix(BEGINNING))))


@cases("form", "csv", "jsonl")
@cases(
    "query, expected",
    ("", ["A-2", "A-1"]),
    ("?status=failed", ["A-2"]),
    ("?q=A-1", ["A-1"]),
    ("?definition=other", []),
    ("?step=Completed", ["A-1"]),
)
def test_s10_5_the_file_has_exactly_what_the_list_has(
    form: str,
    query: str,
    expected: list[str],
    orders: dict[str, ProcessInstance],
    operating: Client,
) -> None:
    rows = lines(operating, form, query)

    assert [row["key"] for row in rows] == expected
    for row in rows:
        process = orders[row["key"]]
        assert row["process"] == str(process.pk)
        assert row["status"] == process.status
        assert row["started"] == process.started_at.isoformat()


@cases("batch", 1, 2, 500)
def test_s10_5_it_is_read_in_parts_without_gap_or_repeat(
    batch: int, operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BATCH", batch)

    assert [row["key"] for row in lines(operating, "jsonl")] == ["A-2", "A-1"]
    assert [row["key"] for row in lines(operating, "jsonl", "?status=completed")] == [
        "A-1"
    ]


def test_s10_5_conditions_that_cannot_be_understood_are_no_file_and_it_says_why(
    operating: Client,
) -> None:
    answer = operating.get("/processes/export.csv", {"where": "amount >"})

    said = Filters(where="amount >").mistake
    assert said
    assert (answer.status_code, answer.text) == (400, said)


def test_s10_5_other_forms_are_not_there(operating: Client) -> None:
    assert operating.get("/processes/export.xml").status_code == 404


def test_s10_5_the_list_leads_to_the_file_with_its_filters(operating: Client) -> None:
    page = operating.read("/processes/?status=failed&q=A-")

    assert 'href="/processes/export.csv?status=failed&amp;q=A-"' in page
