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
from django.test import Client

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.exports import BEGINNING
from monitoring.queries import find
from monitoring.queries.instances import pages
from monitoring.queries.instances.filters import Filters
from orchestrator import send_event
from orchestrator.engine.drain import drain
from orchestrator.exceptions import Permanent
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
)
from orchestrator.testing import failing
from tests.apps.process_managers.fixtures import parcels
from tests.apps.process_managers.handlers import greet_depot
from tests.apps.process_managers.messages import DepotOpened
from tests.browser.samples import HARMFUL
from tests.services.bulk import begun

__all__ = ["parcels"]

pytestmark = pytest.mark.django_db

Ask = Callable[[str], str]
"""Gives the page that a text leads to, or where it leads on to."""


@pytest.fixture
def orders() -> dict[str, ProcessInstance]:
    """One that has completed and one that has failed, and an event that nothing took."""
    for destination, key in ((Destination.INTERNAL, "A-1"), (Destination.BOTH, "A-2")):
        place_order(destination, "50 MWh", key)
    drain()
    send_event(
        ListedOnInternal("B-9"), id="lost-1", source="exchange", correlation_key="B-9"
    )
    drain()
    return {row.correlation_key: row for row in ProcessInstance.objects.all()}


@pytest.fixture
def ask(client: Client, operator: User) -> Ask:
    client.force_login(operator)

    def answered(text: str) -> str:
        answer = client.get(f"/find/?q={quote(text)}")
        assert answer.status_code in (200, 302)
        return answer.get("Location") or answer.content.decode()

    return answered


def kinds(page: str) -> list[str]:
    part = page.partition('id="found"')[2]
    return [unescape(name) for name in re.findall(r"<h2>(.*?)</h2>", part)]


def test_s10_1_the_name_of_a_job_leads_to_what_it_is_for(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    process = orders["A-2"]
    run, command = process.step_runs.latest("pk"), process.commands.latest("pk")

    assert ask(f"steprun:{run.pk}").startswith(f"/processes/{process.pk}/")
    assert ask(f"issuedcommand:{command.pk}").startswith(f"/processes/{process.pk}/")
    event = process.events.latest("pk")
    assert str(process.pk) in ask(f" InboxEvent:{event.pk}")
    for nothing in (
        "steprun:0",
        "steprun:x",
        f"steprun:{'9' * 40}",
        "steprun:",
        "bulk:1",
    ):
        assert "Nothing" in ask(nothing), nothing


def test_s10_1_a_process_id_and_a_key_lead_to_the_process(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    there = f"/processes/{orders['A-1'].pk}/"

    assert (
        ask("A-1") == ask(str(orders["A-1"].pk)) == ask(orders["A-1"].pk.hex) == there
    )
    assert ask(" A-1 ") == there


def test_s10_1_the_beginning_of_a_key_leads_to_the_list(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    assert ask("A-") == "/processes/?q=A-"


def test_s10_1_an_event_id_leads_to_the_event(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    event = InboxEvent.objects.get(event_id="lost-1")

    assert ask("lost-1") == f"/events/?q=lost-1#event-{event.pk}"


def test_s10_1_the_same_id_of_two_senders_leads_to_both(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    lost = ListedOnInternal("B-9")
    send_event(lost, id="lost-1", source="another", correlation_key="B-9")

    assert ask("lost-1") == "/events/?q=lost-1"


def test_s10_1_a_command_id_leads_to_the_transition_that_issued_it(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    command = IssuedCommand.objects.filter(instance=orders["A-2"]).first()
    assert command

    place = ask(str(command.pk))

    revision = command.revision
    assert place.startswith(f"/processes/{orders['A-2'].pk}/?before={revision + 1}")


@pytest.mark.parametrize("name", ["{}", "issuedcommand:{}"])
def test_s10_1_a_command_of_an_event_handler_leads_to_its_failure(
    name: str, parcels: None, ask: Ask
) -> None:
    with failing(greet_depot, Permanent("no room")):
        send_event(DepotOpened("east"), id="1", source="depot")
        drain()
    command = IssuedCommand.objects.get(instance=None)

    there = ask(name.format(command.pk))

    assert there == f"/failures/{Incident.objects.get(command=command).fingerprint}/"


def test_s10_1_a_command_of_an_event_handler_that_did_not_fail_has_no_page(
    parcels: None, ask: Ask
) -> None:
    send_event(DepotOpened("east"), id="1", source="depot")
    drain()
    command = IssuedCommand.objects.get(instance=None)

    assert "Nothing is called so." in ask(str(command.pk))


def test_s10_1_an_operation_id_leads_to_its_page(
    orders: dict[str, ProcessInstance], ask: Ask, operator: User
) -> None:
    operation = begun(operator, {"status": "failed"}, 1)
    assert BulkOperation.objects.count() == 1

    assert ask(str(operation.pk)) == f"/operations/{operation.pk}/"


def test_s10_1_words_of_an_error_lead_to_its_cause(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    incident = Incident.objects.filter(instance=orders["A-2"]).get()
    words = incident.message[5:25]

    assert ask(words) == f"/failures/{incident.fingerprint}/"
    assert ask(words.upper()) == ask(words)


def test_s10_1_what_could_be_several_things_is_shown_by_kind(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    send_event(ListedOnInternal("A-1"), id="A-1", source="exchange")

    page = ask("A-1")

    assert kinds(page) == ["Processes", "Events"]
    assert f'href="/processes/{orders["A-1"].pk}/"' in page
    assert 'href="/events/?q=A-1#event-' in page


def test_s10_1_who_may_not_look_at_events_finds_none(
    orders: dict[str, ProcessInstance], ask: Ask, operator: User
) -> None:
    operator.user_permissions.remove(Permission.objects.get(codename="view_inboxevent"))

    assert "Nothing is called so." in ask("lost-1")


def test_s10_1_nothing_found_says_what_can_be_found(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    page = ask("nowhere to be found")

    assert kinds(page) == []
    assert "an event, a command and an operation by its id" in page
    assert "Nothing is called so." in ask(str(uuid4()))


def test_s10_1_two_letters_are_no_words_of_an_error(
    orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    message = Incident.objects.get(instance=orders["A-2"]).message
    two, three = message[:2], message[:3]

    assert "Nothing is called so." in ask(two)
    assert "/failures/" in ask(three)


@pytest.mark.parametrize("text", [*HARMFUL, "\0", "%", "_", "'", "9" * 300])
def test_s10_1_a_harmful_text_is_a_text(
    text: str, orders: dict[str, ProcessInstance], ask: Ask
) -> None:
    page = ask(text)

    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_s10_1_an_empty_box_leads_to_the_list(ask: Ask) -> None:
    assert ask("") == "/processes/"


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


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["A-2", "A-1"]),
        ("?status=failed", ["A-2"]),
        ("?q=A-1", ["A-1"]),
        ("?definition=other", []),
        ("?step=Completed", ["A-1"]),
    ],
)
def test_s10_5_the_file_has_exactly_what_the_list_has(
    form: str,
    query: str,
    expected: list[str],
    orders: dict[str, ProcessInstance],
    client: Client,
    operator: User,
) -> None:
    client.force_login(operator)

    rows = lines(client, form, query)

    assert [row["key"] for row in rows] == expected
    for row in rows:
        process = orders[row["key"]]
        assert row["process"] == str(process.pk)
        assert row["status"] == process.status
        assert row["started"] == process.started_at.isoformat()


@pytest.mark.parametrize("batch", [1, 2, 500])
def test_s10_5_it_is_read_in_parts_without_gap_or_repeat(
    batch: int,
    orders: dict[str, ProcessInstance],
    client: Client,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "BATCH", batch)
    client.force_login(operator)

    assert [row["key"] for row in lines(client, "jsonl")] == ["A-2", "A-1"]
    assert [row["key"] for row in lines(client, "jsonl", "?status=completed")] == [
        "A-1"
    ]


def test_s10_5_conditions_that_cannot_be_understood_are_no_file_and_it_says_why(
    client: Client, operator: User
) -> None:
    client.force_login(operator)

    answer = client.get("/processes/export.csv", {"where": "amount >"})

    said = Filters(where="amount >").mistake
    assert said
    assert (answer.status_code, answer.text) == (400, said)


def test_s10_5_other_forms_are_not_there(client: Client, operator: User) -> None:
    client.force_login(operator)

    assert client.get("/processes/export.xml").status_code == 404


def test_s10_5_the_list_leads_to_the_file_with_its_filters(
    orders: dict[str, ProcessInstance], client: Client, operator: User
) -> None:
    client.force_login(operator)

    page = client.get("/processes/?status=failed&q=A-").content.decode()

    assert 'href="/processes/export.csv?status=failed&amp;q=A-"' in page
