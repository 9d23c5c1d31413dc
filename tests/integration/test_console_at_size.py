"""No page of the console reads whole tables: what it looks at stays the same however many processes there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from bench.seed import seeding
from bench.seed.recording import Recording
from monitoring.admin import lists
from monitoring.queries import (
    attention,
    audit,
    board,
    bulk,
    counts,
    decisions,
    definitions,
    event_search,
    events,
    failures,
    figures,
    health,
    instances,
    last_hour,
)
from orchestrator import setup_status
from orchestrator.models import (
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
)
from orchestrator.setup_status import status
from tests.services import emptying
from tests.services.seeds import recorded
from tests.services.sizes import size

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = size(usual=900, full=20_000)
BOUND = size(usual=60, full=100)
"""Rows that one look of a page takes, so that few processes are many."""

LISTS = [
    *(f"/processes/?status={name}" for name in [*Status.values, "live"]),
    "/processes/",
    "/processes/?definition=order-listing&status=failed",
    "/processes/?definition=video-analysis",
    "/processes/?version=1",
    "/processes/?version=9",
    "/processes/?step=agent_decides",
    "/processes/?step=Completed",
    "/processes/?step=nowhere",
    "/processes/?escalated=1",
    "/processes/?overdue=1",
    "/processes/?stalled=1",
    "/processes/?stalled=1&definition=order-listing",
    "/processes/?owner=me",
    "/processes/?owner=nobody",
    "/processes/?q=SEED-000000100",
    "/processes/?q=SEED-0000001",
    "/processes/?q=SEED",
    "/processes/?q=nothing",
    "/processes/?q=SEED-0000001&status=failed",
    "/find/?q=SEED-000000100",
]
PAGES = [
    "/",
    "/definitions/order-listing/",
    "/definitions/support-inquiry/",
    "/definitions/support-inquiry/?step=reply",
    "/definitions/order-listing/?version=2",
    "/decisions/",
    "/failures/",
    "/failures/?order=largest",
    "/failures/?definition=order-listing",
    "/operations/",
    "/operations/begin/?action=retry&status=failed",
    "/operations/begin/?action=escalate&status=live",
    "/operations/begin/?action=escalate&definition=order-listing",
    "/operations/begin/?action=escalate&version=1",
    "/operations/begin/?action=escalate&step=Completed",
    "/operations/begin/?action=escalate&q=SEED-0000001",
    "/operations/begin/?verdict=parked",
    "/events/",
    "/events/?tab=parked",
    "/events/?q=nothing",
    "/events/?type=OrderCreated",
    "/events/?type=nothing",
    "/events/?key=SEED-000000100",
    "/events/?key=nothing",
    "/events/?verdict=moved&type=nothing",
    "/events/?verdict=unrouted",
    "/events/?from=2020-01-01&to=2020-01-02",
    "/audit/",
    "/audit/?who=ann",
    "/audit/?who=nobody",
    "/audit/?action=cancel",
    "/audit/?action=cancel&when=yesterday",
    "/audit/?result=refused",
    "/audit/?result=done&who=ann&action=nothing",
    "/audit/?who=ann&action=cancel&result=refused",
    "/audit/?q=SEED-000000100",
    "/audit/?q=nothing",
    "/audit/?event=1",
    "/audit/?from=2020-01-01&to=2020-01-02",
]
ADMIN = [
    f"/admin/orchestrator/{name}/{query}"
    for name in (
        "processinstance",
        "steprun",
        "checkpoint",
        "inboxevent",
        "issuedcommand",
        "incident",
        "operatoraction",
    )
    for query in ("", "?q=SEED-000000100", "?q=nothing", "?o=3")
] + [
    "/admin/orchestrator/steprun/?status__exact=failed",
    "/admin/orchestrator/checkpoint/?status=failed",
    "/admin/orchestrator/processinstance/?name=order-listing",
    "/admin/orchestrator/operatoraction/?action=decide",
]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fill the database, a tenth of it live; and empty it before the invariants are asked of each process."""
    for module, name in (
        (bulk, "CAP"),
        (counts, "MANY"),
        (attention, "CAP"),
        (audit, "LOOKED_AT"),
        (decisions, "CAP"),
        (events, "CAP"),
        (event_search, "LOOKED_AT"),
        (failures, "CAP"),
        (failures, "MANY"),
        (health, "MANY"),
        (instances, "MANY"),
        (instances, "LOOKED_AT"),
        (attention, "FEW"),
        (board, "FEW"),
        (last_hour, "LOOKED_AT"),
        (last_hour, "FAILURES"),
        (definitions, "CAP"),
        (definitions, "LOOKED_INTO"),
        (lists, "LOOKED_AT"),
    ):
        monkeypatch.setattr(module, name, BOUND)
    monkeypatch.setattr(counts.capped, "__defaults__", (BOUND,))
    seeding.seed(PROCESSES, [livelier(recording) for recording in recorded()])
    audited(PROCESSES * 3)
    seeding.tidy()
    yield
    emptying.empty(connection)


def audited(number: int) -> None:
    """Have so many actions of three people in the audit, an hour apart, one of a hundred refused."""
    now, names = timezone.now(), ["retry", "escalate", "cancel"]
    OperatorAction.objects.bulk_create(
        OperatorAction(
            key=uuid4(),
            action=names[one % 7 % 3],
            actor_name=["ann", "bob", "eve"][one % 3],
            reason="because",
            result="done" if one % 100 else "refused",
            at=now - timedelta(hours=one),
        )
        for one in range(number)
    )


def livelier(recording: Recording) -> Recording:
    """Have what goes on, or needs a person, met more often."""
    return replace(recording, share=recording.share + 10)


@pytest.fixture
def signed_in(client: Client, administrator: User) -> Client:
    client.force_login(administrator)
    return client


def test_no_page_looks_at_more_rows_than_it_may(many: None, signed_in: Client) -> None:
    some = ProcessInstance.objects.order_by("-pk")
    named = some.values_list("name", "pk")
    pages = [f"/processes/{pk}/" for _, pk in dict(named).items()]
    pages += [f"{page}?at=1" for page in pages]
    broken = []

    for path in [*LISTS, *PAGES, *ADMIN, *pages]:
        statements = _asked(signed_in, path)
        for sql, params in statements:
            looked_at = _looked_at(sql, params)
            if looked_at:
                broken.append(f"{path}: {looked_at}: {sql[:150]} ... {sql[-250:]}")

    assert not broken, "\n".join(broken)


def test_no_probe_looks_at_more_rows_than_it_may(
    many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (counts, "FEW"),
        (figures, "MANY"),
        (figures, "FEW"),
        (figures, "NEWEST"),
        (setup_status, "MOST"),
    ):
        monkeypatch.setattr(module, name, BOUND)
    InboxEvent.objects.filter(wake_at__isnull=False).update(wake_at=timezone.now())
    StepRun.objects.filter(wake_at__isnull=False).update(wake_at=timezone.now())

    asked = _statements(lambda: (figures.figures(), setup_status.unattended()))

    assert len(asked) > 20
    assert [sql for sql, params in asked if _looked_at(sql, params)] == []


def test_paging_through_a_list_that_is_looked_for_shows_each_once(many: None) -> None:
    filters = instances.Filters(step="reply")
    there = set(filters.applied().values_list("pk", flat=True))

    seen, before = [], ""
    for _ in range(PROCESSES):
        page = instances.page_of(filters, before, size=7)
        seen += [row.pk for row in page.rows]
        before = page.older
        if not before:
            break

    assert len(seen) == len(set(seen))
    assert set(seen) == there
    assert seen == sorted(seen, reverse=True)


def test_where_none_of_those_looked_at_matches_the_others_can_be_looked_at(
    many: None, signed_in: Client
) -> None:
    text = signed_in.get("/processes/?version=9").content.decode()
    assert "None of those looked at matches." in text
    assert "before=" in text.partition("None of those looked at")[2]


@pytest.mark.parametrize(
    "filters",
    [
        instances.Filters(status="live"),
        instances.Filters(q="SEED-0000001"),
        instances.Filters(q="SEED"),
        instances.Filters(step="agent_decides", status="waiting"),
        instances.Filters(version="1", definition="support-inquiry"),
        instances.Filters(status="completed", definition="video-analysis"),
    ],
    ids=lambda filters: "-".join(filters.parameters().values()),
)
def test_the_parts_of_a_list_are_the_list(
    many: None, filters: instances.Filters
) -> None:
    there = list(filters.applied().order_by("-pk").values_list("pk", flat=True))

    seen, before = [], ""
    for _ in range(PROCESSES):
        page = instances.page_of(filters, before, size=40)
        seen += [row.pk for row in page.rows]
        before = page.older
        if not before:
            break

    assert seen == there


def test_status_says_that_there_may_be_more(
    many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.setup_status.MOST", BOUND)

    found = {row["name"]: row for row in status()["definitions"] if row["statuses"]}

    inquiry = found["support-inquiry"]
    assert inquiry["at_least"] == ["live", "ended"]
    assert sum(inquiry["statuses"].values()) == 2 * BOUND


def _asked(client: Client, path: str) -> list[tuple[str, Any]]:
    def get() -> None:
        assert client.get(path).status_code in (200, 302), path

    return _statements(get)


def _statements(action: Callable[[], object]) -> list[tuple[str, Any]]:
    """What an action asks of the tables."""
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith("SELECT") and "orchestrator_" in sql:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        action()
    return asked


LARGE = (
    "processinstance",
    "steprun",
    "checkpoint",
    "inboxevent",
    "issuedcommand",
    "operatoraction",
)


def _looked_at(sql: str, params: Any) -> str:
    """Say how a statement looks at more rows of a large table than it may; "" when it does not."""
    if connection.vendor == "sqlite":
        return _scanned(sql, params)
    # Of few rows PostgreSQL would read all, whatever indexes there are.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        plan = cursor.fetchone()[0]
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return ", ".join(_too_many(plan[0]["Plan"]))


def _too_many(plan: dict[str, Any]) -> Iterator[str]:
    name = plan.get("Relation Name", "")
    rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    looked_at = rows * plan["Actual Loops"]
    # Each of the rows of one look may have some rows of its own.
    if name.removeprefix("orchestrator_") in LARGE and looked_at > 20 * BOUND + 200:
        yield f"{plan['Node Type']} looks at {looked_at} rows of {name}"
    for part in plan.get("Plans", []):
        yield from _too_many(part)


def _scanned(sql: str, params: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        steps = [row[3] for row in cursor.fetchall()]
    # Walking an index for the order alone ends with the page.
    walks = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
    large = [
        step for step in walks if step.split()[1].removeprefix("orchestrator_") in LARGE
    ]
    limited = "LIMIT" in sql
    return "" if limited else ", ".join(large)
