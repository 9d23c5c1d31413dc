"""S12.2, the audit page: who did what, when, from where, why, what it changed; filtered, exported, only added to."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient, RequestFactory
from django.test.utils import override_settings
from django.utils import timezone
from pytest_django import Settings

from examples.order_listing.messages import Destination, ListedOnInternal
from monitoring.audit import pages, words
from monitoring.audit.filters import AuditFilters, named_span
from monitoring.audit.pages import audit_batches, audit_page
from monitoring.audit.tallies import FEW, action_tallies
from orchestrator import send_event
from orchestrator.engine.operations import cancel, discard, escalate, redeliver
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.browser.samples import HARMFUL
from tests.conftest import permissions
from tests.services.asking import asked
from tests.services.bulk import begun
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.doing import fresh, refused
from tests.services.placing import placed
from tests.services.reading import all_rows, between, rows_of

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]


@pytest.fixture
def order(operator: User) -> ProcessInstance:
    """An order that was escalated from 192.0.2.7, and then refused another revision's cancelling."""
    process = placed(Destination.EXTERNAL, key="A-1")
    late = asked(reason="late <b>again</b>", address="192.0.2.7")
    escalate(process.pk, request=late)
    refused("", cancel, process, reason="stop", expected_revision=99)
    return fresh(process)


def discarded(order: ProcessInstance) -> InboxEvent:
    """An event that came too early for the order, and was discarded as wrong."""
    early = ListedOnInternal("A-1")
    send_event(early, id="early", source="exchange", process_id=order.pk)
    run()
    event = InboxEvent.objects.get(event_id="early")
    discard(event.pk, request=asked(reason="wrong"))
    return event


ROW = '<tr id="action-'


@pytest.fixture
def read(operating: Client) -> Read:
    return lambda query: operating.read(f"/audit/{query}")


def done(number: int = 1, **facts: Any) -> list[OperatorAction]:
    """Have so many actions in the audit, a second apart from now back."""
    usual = {"action": "retry", "actor_name": "ann", "result": "done", "reason": "r"}
    at = facts.pop("at", timezone.now())
    return OperatorAction.objects.bulk_create(
        OperatorAction(key=uuid4(), at=at - timedelta(seconds=n), **{**usual, **facts})
        for n in range(number)
    )


def keys(filters: AuditFilters) -> list[int]:
    return [entry.row.pk for part in audit_batches(filters) for entry in part]


def paged(filters: AuditFilters) -> list[int]:
    """The keys of all rows, page by page."""
    rows = all_rows(lambda before: audit_page(filters, before))
    return [entry.row.pk for entry in rows]


def test_s12_2_a_row_says_who_when_from_where_what_why_and_what_it_changed(
    order: ProcessInstance, read: Read
) -> None:
    text = read("")

    _refused, escalated = re.findall(rf"{ROW}.*?</tr>", text, re.DOTALL)
    who = ("<b>operator</b>", "192.0.2.7", "<b>Escalate</b>", f"/processes/{order.pk}/")
    change = ("escalation level", "<del>0</del>", "<ins>1</ins>")
    for said in (*who, "late &lt;b&gt;again&lt;/b&gt;", *change):
        assert said in escalated


def test_s12_2_a_refusal_says_why(order: ProcessInstance, read: Read) -> None:
    text = read("?result=refused")

    assert text.count(ROW) == 1
    assert "Refused" in text
    assert "The process has changed since the page was loaded" in text


@cases(
    "query, number",
    ("", 2),
    ("?who=operator", 2),
    ("?who=nobody", 0),
    ("?action=escalate", 1),
    ("?action=cancel&result=refused", 1),
    ("?action=cancel&result=done", 0),
    ("?q=A-1", 2),
    ("?q=A-2", 0),
    ("?q=A-1&action=cancel&who=operator&when=today", 1),
    ("?when=yesterday", 0),
    ("?when=week", 2),
    ("?from=2020-01-01", 2),
    ("?to=2020-01-01", 0),
    ("?event=1", 0),
)
def test_s12_2_the_address_narrows_the_list_and_its_chips_are_removed_one_by_one(
    query: str, number: int, order: ProcessInstance, read: Read
) -> None:
    with timezone.override(UTC):
        text = read(query)

    assert text.count(ROW) == number
    given = [part for part in query.removeprefix("?").split("&") if part]
    chips = between(text, '<div class="chips"', "</div>")
    assert chips.count("remove the filter") == len(given)


def test_s12_2_one_process_has_its_own_rows_by_its_id_and_its_page_leads_there(
    order: ProcessInstance, read: Read, page_of: Read
) -> None:
    done(3)

    assert f'href="/audit/?q={order.pk}"' in page_of(order)
    assert read(f"?q={order.pk}").count(ROW) == 2


def test_s12_2_what_was_done_to_an_event_is_found_by_it_and_by_its_process(
    order: ProcessInstance,
) -> None:
    event = discarded(order)
    refused("", redeliver, event)

    found = OperatorAction.objects.filter(event=event).order_by("-at", "-pk")
    rows = list(found.values_list("pk", flat=True))
    assert len(rows) == 2
    assert keys(AuditFilters(event=str(event.pk))) == rows
    assert set(rows) < set(keys(AuditFilters(q=str(order.pk))))


def test_s12_2_who_may_not_see_events_is_not_told_of_them(
    order: ProcessInstance, operator: User, operating: Client
) -> None:
    discarded(order)
    operator.user_permissions.remove(permissions()["view_inboxevent"])

    for place in ("/audit/", "/audit/export.jsonl"):
        text = operating.read(place)
        assert "wrong" in text
        assert "ListedOnInternal" not in text


OF_DATA = {"definition": "order-listing", "where": "destination = external"}
OF_EVENTS = {"type": "OrderCreated"}


@cases(
    "permission, begin, secret",
    ("view_data_processinstance", ("escalate", "processes", OF_DATA), "= external"),
    ("view_inboxevent", ("redeliver", "events", OF_EVENTS), "OrderCreated"),
)
def test_s12_1_what_an_operation_was_begun_on_is_told_to_who_may_see_it(
    permission: str, begin: Any, secret: str, order: ProcessInstance, operating: Client
) -> None:
    operator = User.objects.get(username="operator")
    action, selection, about = begin
    InboxEvent.objects.update(verdict="unrouted")
    begun(operator, about, 1, action=action, selection=selection)
    InboxEvent.objects.update(verdict="started")

    def told() -> list[bool]:
        query = "?action=start_bulk&who=operator"
        places = (f"/audit/{query}", f"/audit/export.jsonl{query}")
        return [secret in operating.read(place) for place in places]

    before = told()
    operator.user_permissions.remove(permissions()[permission])

    assert (before, told()) == ([True, True], [False, False])


def test_s12_2_days_are_those_of_the_pages_zone() -> None:
    with timezone.override("Asia/Tokyo"):
        since, until = named_span("today")
        second = timedelta(seconds=1)
        moments = (until - second, since, since - second, until)
        last, first, before, _next = (done(at=at)[0].pk for at in moments)

        assert keys(AuditFilters(when="today")) == [last, first]
        assert keys(AuditFilters(when="yesterday")) == [before]
        day = str(timezone.localdate())
        assert len(keys(AuditFilters(since=day, until=day))) == 2


@cases(
    "query, said",
    ("?from=yesterday", "yesterday is no day: write it as in 2026-11-23."),
    ("?to=0001-01-01", "0001-01-01 is no day"),
    ("?from=2026-02-02&to=2026-02-01", "The first day lies after the last"),
    ("?when=always", "There is no such span of time"),
    ("?result=perhaps", "There is no such result"),
    ("?event=five", "An event is looked for by its number."),
    ("?event=٣", "An event is looked for by its number."),
)
def test_s12_2_what_cannot_be_understood_shows_nothing_and_says_why(
    query: str, said: str, order: ProcessInstance, read: Read, operating: Client
) -> None:
    text = read(query)

    assert said in text
    assert ROW not in text
    operating.read(f"/audit/export.csv{query}", status=400)


@cases(
    "filters",
    AuditFilters(),
    AuditFilters(who="bob"),
    AuditFilters(who="ann", action="cancel"),
    AuditFilters(action="cancel", result="refused"),
    AuditFilters(result="refused"),
    AuditFilters(who="bob", result="done", action="retry"),
    AuditFilters(when="today"),
)
def test_s12_2_the_pages_and_the_export_are_the_list(
    filters: AuditFilters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE", 7)
    monkeypatch.setattr(pages, "LOOKED_AT", 11)
    same = timezone.now().replace(hour=12)
    done(40, at=same)
    done(9, at=same, action="cancel")
    done(13, actor_name="bob", at=same)
    done(5, actor_name="bob", action="cancel", result="refused")
    rows, _order = filters.found()
    there = (
        rows.filter(filters.unindexed())
        .order_by("-at", "-pk")
        .values_list("pk", flat=True)
    )

    assert paged(filters) == list(there) != []
    assert keys(filters) == list(there)


def test_s12_2_a_person_is_found_by_the_name_they_sign_in_with_also_when_deleted(
    order: ProcessInstance, monkeypatch: pytest.MonkeyPatch, operator: User
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(User, "__str__", lambda user: "Olivia Operator")
        done(2, actor_name="Olivia Operator")
        assert len(keys(AuditFilters(who="operator"))) == 2
    operator.delete()

    assert len(keys(AuditFilters(who="operator"))) == 2
    assert OperatorAction.objects.filter(actor_name="operator").count() == 2


def test_s12_2_today_and_yesterday_stand_first(read: Read, settings: Settings) -> None:
    # Where it is noon now, midnight comes between nothing.
    settings.TIME_ZONE = f"Etc/GMT{timezone.now().hour - 12:+d}"
    noon = timezone.localtime() - timedelta(days=1)
    done(2, action="cancel", at=noon)
    done(FEW + 5, at=noon)
    done(1, action="prune", at=timezone.now(), actor_name="")

    days = (day.actions for day in action_tallies())
    today, yesterday = ([(word, str(n)) for word, n, _ in day] for day in days)

    assert yesterday == [("Cancel process", "2"), ("Retry", "100+")]
    assert today == [("Prune", "1")]
    assert 'href="?action=cancel&amp;when=yesterday"' in read("")
    assert read("?action=cancel&when=yesterday").count(ROW) == 2


def test_two_actions_of_one_button_name_stand_beside_each_other(read: Read) -> None:
    done(1, action="assign")
    done(2, action="assign_failures")

    today, _yesterday = action_tallies()

    found = [(word, str(n)) for word, n, _ in today.actions]
    assert found == [("Assign", "1"), ("Assign (failures)", "2")]
    assert 'href="?action=assign_failures&amp;when=today"' in read("")


def test_two_actions_of_one_label_stand_beside_each_other(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label comes from an application too, or from a translation."""
    monkeypatch.setitem(words.OTHER_ACTIONS, "prune", "Retry")
    done(1, action="retry")
    done(2, action="prune")

    today, _yesterday = action_tallies()

    assert [word for word, _n, _address in today.actions] == ["Retry", "Retry"]


def test_every_action_of_the_audit_has_a_label_of_its_own() -> None:
    labels = [label for _name, label in words.action_names()]
    assert len({*labels}) == len(labels)


def test_s12_2_the_export_has_exactly_what_matched_in_both_forms(
    order: ProcessInstance, operating: Client
) -> None:
    done(3)

    rows = rows_of(operating, "/audit/export.csv?q=A-1")
    objects = rows_of(operating, "/audit/export.jsonl?q=A-1")

    for form in (rows, objects):
        assert [one["action"] for one in form] == ["cancel", "escalate"]
    levels = [objects[1][when]["escalation_level"] for when in ("before", "after")]
    assert levels == [0, 1]
    assert json.loads(rows[1]["after"]) == objects[1]["after"]
    assert (rows[1]["from"], rows[1]["key"]) == ("192.0.2.7", "A-1")
    assert datetime.fromisoformat(rows[1]["at"]).tzinfo is not None


@cases(
    "text", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", *HARMFUL
)
def test_s12_2_no_cell_of_the_export_is_a_formula(text: str, operating: Client) -> None:
    done(1, reason=text, actor_name=text, detail=text)

    [row] = rows_of(operating, "/audit/export.csv")
    for name in ("reason", "who", "detail"):
        assert row[name].lstrip("'") == text.lstrip("'")
        assert not row[name].startswith(tuple("=+-@\t\r\n\uff1d"))


def test_s12_2_the_export_reads_a_part_at_a_time_and_only_what_is_taken(
    operating: Client, django_assert_max_num_queries: Any
) -> None:
    done(1_400)
    answer: Any = operating.get("/audit/export.jsonl")
    parts = iter(answer.streaming_content)

    with django_assert_max_num_queries(1):
        first = next(parts)
    done(1)  # what comes now stands above what was read

    lengths = [len(part.splitlines()) for part in (first, *parts)]
    assert (lengths[0], sum(lengths)) == (500, 1_400)


SIGNED_IN = ("sessions.middleware.Session", "auth.middleware.Authentication")


@pytest.mark.django_db(transaction=True)
@override_settings(
    MIDDLEWARE=[f"django.contrib.{name}Middleware" for name in SIGNED_IN]
)
def test_s12_2_a_server_for_asgi_sends_the_export_as_it_is_read(operator: User) -> None:
    done(600)

    async def taken() -> list[int]:
        client = AsyncClient()
        await client.aforce_login(operator)
        answer: Any = await client.get("/audit/export.jsonl")
        assert answer.is_async
        parts = [len(part.splitlines()) async for part in answer.streaming_content]
        await sync_to_async(connections.close_all)()
        return parts

    assert asyncio.run(taken()) == [500, 100]


def test_s12_2_reading_pages_and_opening_dialogs_writes_nothing(
    order: ProcessInstance, operating: Client
) -> None:
    there = OperatorAction.objects.count()

    of_order = f"/processes/{order.pk}/"
    for place in ("/", of_order, "/events/", "/decisions/", "/audit/export.csv"):
        operating.read(place)

    assert OperatorAction.objects.count() == there


CHANGES = {"update", "delete", "bulk_update", "update_or_create", "_raw_delete", "save"}


def changing(path: Path) -> list[str]:
    """Where a module changes or deletes rows of the audit: calls that begin with its table or a name bound to it."""
    tree = ast.parse(path.read_text())
    bound = {"OperatorAction"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and "OperatorAction" in ast.unparse(node.value):
            bound |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return [
        ast.unparse(call)[:100]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in CHANGES
        and re.match(rf"({'|'.join(bound)})\b", ast.unparse(call.func))
    ]


def test_s12_2_no_code_but_prune_changes_or_deletes_a_row_of_the_audit() -> None:
    every = [*ROOT.glob("orchestrator/**/*.py"), *ROOT.glob("monitoring/**/*.py")]
    ours = [path for path in every if "migrations" not in path.parts]
    code = [path for path in ours if "OperatorAction" in path.read_text()]

    assert len(code) > 10
    found = [str(path.relative_to(ROOT)) for path in code if changing(path)]
    assert found == ["orchestrator/engine/storage/pruning.py"]


def test_s12_2_nobody_changes_the_audit_in_the_admin(
    order: ProcessInstance, administrator: User, admin: Client
) -> None:
    row = OperatorAction.objects.latest("pk")
    request = RequestFactory().get("/")
    request.user = administrator
    its_admin = site._registry[OperatorAction]

    assert not its_admin.has_add_permission(request)
    assert not its_admin.has_change_permission(request, row)
    assert not its_admin.has_delete_permission(request, row)
    table = "/admin/orchestrator/operatoraction/"
    form = {"reason": "other", "post": "yes"}
    for place in ("add/", f"{row.pk}/change/", f"{row.pk}/delete/"):
        assert admin.post(f"{table}{place}", form).status_code == 403
    gone = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    admin.post(table, gone)
    assert OperatorAction.objects.get(pk=row.pk).reason == row.reason
