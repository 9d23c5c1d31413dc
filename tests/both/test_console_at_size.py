"""No page of the console reads whole tables: what it looks at stays the same however many processes there are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, cast
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from bench.seed import seeding
from bench.seed.recording import Recording
from monitoring.admin import lists
from monitoring.attention import board, health, last_hour, problem_counts
from monitoring.audit import pages as audit
from monitoring.definition import definitions, seen_visits, step_counts
from monitoring.definition.versions import preview
from monitoring.lists import search_by_name
from monitoring.lists.bulk import bulk
from monitoring.lists.events import event_search, event_volume, events, selected_events
from monitoring.lists.failures import failures, resolved_failures, trends
from monitoring.lists.processes import arm, pages, stalled_processes
from monitoring.lists.processes import filters as instances
from monitoring.lists.waits import decisions
from monitoring.lists.waits import filters as narrowing
from monitoring.probes import figures
from monitoring.queries import counts, recent_rows, window
from orchestrator import setup_status
from orchestrator.engine.operations import ActionRequest, make_token
from orchestrator.models import (
    InboxEvent,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    Status,
    StepRun,
)
from orchestrator.setup_status import setup_figures
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.database import analyze
from tests.services.noting import noting
from tests.services.paging import walked
from tests.services.seeds import recorded
from tests.services.sizes import size

pytestmark = pytest.mark.django_db

PROCESSES = size(usual=900, full=20_000)
BOUND = size(usual=60, full=100)
"""Rows that one look of a page takes, so that few processes are many."""

LISTS = [
    *words(
        """/processes/ /processes/?definition=order-listing&status=failed /processes/?definition=video-analysis
        /processes/?version=1 /processes/?version=9 /processes/?version=1&status=live
        /processes/?version=1&status=failed&definition=order-listing
        /processes/?version=1&status=live&sort=oldest&step=agent_decides /processes/?step=agent_decides
        /processes/?step=Completed /processes/?step=nowhere /processes/?escalated=1 /processes/?overdue=1
        /processes/?stalled=1 /processes/?stalled=1&definition=order-listing /processes/?owner=me
        /processes/?owner=nobody /processes/?q=SEED-000000100 /processes/?q=SEED-0000001 /processes/?q=SEED
        /processes/?q=nothing /processes/?q=SEED-0000001&status=failed /processes/?where=nothing+%3D+1
        /processes/?where=order_id+exists&status=live&columns=summary,since
        /processes/?where=order_id+exists&definition=order-listing
        /processes/?where=order_id+exists&step=Completed /processes/?where=order_id+exists&q=SEED
        /processes/?sort=oldest /processes/?sort=oldest&status=live
        /processes/?sort=oldest&definition=order-listing
        /processes/?sort=oldest&definition=video-analysis&status=failed /processes/?sort=oldest&step=Completed
        /processes/?sort=oldest&step=agent_decides&status=waiting /processes/?sort=oldest&q=SEED-0000001
        /processes/?sort=oldest&q=EVERYBODY /processes/?sort=oldest&where=order_id+exists&status=live
        /processes/?sort=oldest&version=9 /processes/?q=EVERYBODY /processes/?q=EVERYBODY&status=failed
        /processes/?q=EVERYBODY&status=live&step=Completed /find/?q=EVERYBODY /find/?q=SEED-000000100
        /find/?q=SEED-0000001 /find/?q=nothing"""
    ),
    *(f"/processes/?status={name}" for name in [*Status.values, "live"]),
    "/find/?q=created SEED-000000100",
    "/find/?q=no such letters",
]
PAGES = words(
    """/ /definitions/order-listing/ /definitions/support-inquiry/ /definitions/support-inquiry/?step=reply
        /definitions/order-listing/?version=2
        /definitions/order-listing/?version=2&step=AwaitingExternalCreation&doing=failed
        /definitions/order-listing/?version=2&step=Completed&doing=left-week&window=week
        /definitions/support-inquiry/?step=agent_decides&doing=waiting&overlay=p95
        /definitions/support-inquiry/?overlay=failures&window=week
        /definitions/support-inquiry/picture.svg?overlay=median&window=day /definitions/order-listing/versions/
        /definitions/support-inquiry/versions/ /definitions/order-listing/versions/compare/
        /definitions/order-listing/versions/compare/?from=2&to=1&preview=1
        /definitions/support-inquiry/versions/compare/?preview=1 /stalled/ /stalled/?definition=order-listing
        /waits/ /waits/?definition=order-listing /waits/?definition=nothing /waits/?kind=decision
        /waits/?kind=retry&owner=nobody /waits/?due=soon /waits/?due=overdue /waits/?escalated=1
        /waits/?escalated=1&definition=order-listing /waits/?owner=me /waits/?after=0_1_1
        /waits/?after=0_1_1&kind=decision /decisions/ /failures/ /failures/?order=largest
        /failures/?definition=order-listing /failures/?show=handled /failures/?show=resolved
        /failures/?show=handled&definition=order-listing /failures/?show=resolved&definition=order-listing
        /operations/ /operations/begin/?action=retry&status=failed
        /operations/begin/?action=escalate&status=live
        /operations/begin/?action=escalate&definition=order-listing /operations/begin/?action=escalate&version=1
        /operations/begin/?action=escalate&step=Completed /operations/begin/?action=escalate&q=SEED-0000001
        /operations/begin/?verdict=parked /operations/begin/?of=events&type=OrderCreated
        /operations/begin/?of=events&type=nothing&from=2020-01-01
        /operations/begin/?of=events&key=SEED-000000100 /operations/begin/?of=events&q=nothing&action=discard
        /events/ /events/?tab=parked /events/?volume=week /events/?q=nothing /events/?type=OrderCreated
        /events/?type=nothing /events/?key=SEED-000000100 /events/?key=nothing
        /events/?verdict=moved&type=nothing /events/?verdict=unrouted /events/?from=2020-01-01&to=2020-01-02
        /events/send/?type=OrderCreated /audit/ /audit/?who=ann /audit/?who=nobody /audit/?action=cancel
        /audit/?action=cancel&when=yesterday /audit/?result=refused /audit/?result=done&who=ann&action=nothing
        /audit/?who=ann&action=cancel&result=refused /audit/?q=SEED-000000100 /audit/?q=nothing /audit/?event=1
        /audit/?from=2020-01-01&to=2020-01-02 /tokens/"""
)
CALLS = [
    *words(
        """/api/events/ /api/events/?type=OrderCreated /api/failures/ /api/failures/?definition=order-listing
        /api/failures/none/ /api/operations/ /api/operations/begin/?action=escalate&status=live /api/tokens/"""
    ),
    *(f"/api{page}" for page in LISTS if page.startswith("/processes/")),
]
ADMIN = [
    f"/admin/orchestrator/{name}/{query}"
    for name in words(
        """processinstance steprun checkpoint inboxevent issuedcommand incident operatoraction bulkoperation bulkitem
        failuremark repair accesstoken"""
    )
    for query in ("", "?q=SEED-000000100", "?q=nothing", "?o=3")
] + [
    "/admin/orchestrator/steprun/?status__exact=failed",
    "/admin/orchestrator/checkpoint/?status=failed",
    "/admin/orchestrator/processinstance/?name=order-listing",
    "/admin/orchestrator/operatoraction/?action=decide",
]


BOUNDS: dict[str, Sequence[object]] = {
    "CAP": (
        bulk,
        problem_counts,
        decisions,
        events,
        failures,
        definitions,
        step_counts,
    ),
    "MANY": (counts, failures, health, instances, narrowing),
    "FEW": (counts, failures, problem_counts, board),
    "NEWEST": (trends,),
    "FAILURES": (last_hour, window),
    "SAMPLED": (recent_rows,),
    "LEAST_SHOWN": (event_volume,),
    "SHOWN": (event_volume,),
    "PROCESSES": (seen_visits, narrowing),
    "LOOKED_AT": (
        *(
            audit,
            event_search,
            event_volume,
            selected_events,
            resolved_failures,
            arm,
            pages,
        ),
        *(
            stalled_processes,
            last_hour,
            step_counts,
            window,
            preview,
            seen_visits,
            lists,
            narrowing,
            search_by_name,
        ),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def many(module_db: None) -> Iterator[None]:
    """Fill the database, a tenth of it live."""
    with pytest.MonkeyPatch.context() as patch:
        for name, modules in BOUNDS.items():
            for module in modules:
                patch.setattr(module, name, BOUND)
        patch.setattr(counts.count_rows, "__defaults__", (BOUND,))
        given = {"cap": BOUND, "oldest": "", "newest": ""}
        patch.setattr(counts.count_by, "__kwdefaults__", given)
        counts._compile_once.cache_clear()  # what was composed has the usual bounds
        seeding.seed(PROCESSES, [livelier(recording) for recording in recorded()])
        audited(PROCESSES * 3)
        called("EVERYBODY")
        analyze()
        yield
    counts._compile_once.cache_clear()


@pytest.fixture(autouse=True)
def invariants() -> None:
    """Ask for none: it would take longer than the tests, and these rows are copies."""


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


def called(text: str) -> None:
    """Have all processes known to others by this."""
    starts = ProcessInstance.objects.values_list("pk", "started_at")
    OutsideId.objects.bulk_create(
        OutsideId(instance_id=pk, field="customer", value=text, process_started_at=at)
        for pk, at in starts
    )


def livelier(recording: Recording) -> Recording:
    """Have what goes on, or needs a person, met more often."""
    return replace(recording, share=recording.share + 10)


@pytest.fixture
def signed_in(admin: Client, administrator: User) -> Client:
    _token, value = make_token("bot", 1, request=ActionRequest(administrator, uuid4()))
    admin.defaults["HTTP_AUTHORIZATION"] = f"Bearer {value}"
    return admin


def test_no_page_looks_at_more_rows_than_it_may(many: None, signed_in: Client) -> None:
    named = ProcessInstance.objects.order_by("-pk").values_list("name", "pk")
    pages, broken = [], []
    for pk in dict(named).values():
        last = StepRun.objects.filter(instance=pk, item=None).latest("pk")
        places = ("", "?at=1", "messages/", "messages/?key=1", f"?step={last.node}")
        pages += [f"/processes/{pk}/{place}" for place in places]
        pages.append(f"/api/processes/{pk}/")

    # Usually half of them on SQLite, which asks for the same rows.
    every = size(2, full=1) if connection.vendor == "sqlite" else 1
    for path in [*LISTS, *PAGES, *ADMIN, *CALLS, *pages][::every]:
        for sql, params in _asked(signed_in, path):
            if looked_at := _looked_at(sql, params):
                broken.append(f"{path}: {looked_at}: {sql[:150]} ... {sql[-250:]}")

    assert not broken, "\n".join(broken)


def test_no_probe_reads_more_rows_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MANY", "FEW", "NEWEST"):
        monkeypatch.setattr(figures, name, BOUND)
    monkeypatch.setattr(counts, "FEW", BOUND)
    monkeypatch.setattr(setup_status, "MOST", BOUND)
    InboxEvent.objects.filter(wake_at__isnull=False).update(wake_at=timezone.now())
    StepRun.objects.filter(wake_at__isnull=False).update(wake_at=timezone.now())

    asked = _statements(lambda: (figures.figures(), setup_status.unattended_queues()))

    assert len(asked) > 12
    assert [sql for sql, params in asked if _looked_at(sql, params)] == []


def test_paging_through_a_list_that_is_looked_for_shows_each_once() -> None:
    filters = instances.Filters(step="reply")
    there = filters.applied().order_by("-pk").values_list("pk", flat=True)
    assert [row.pk for row in walked(filters, 7)] == list(there)


def test_where_none_of_those_looked_at_matches_the_others_can_be_looked_at(
    many: None, signed_in: Client
) -> None:
    text = signed_in.read("/processes/?version=9")
    assert "None of those looked at matches." in text
    assert "before=" in text.partition("None of those looked at")[2]


@cases(
    "filters",
    instances.Filters(status="live"),
    instances.Filters(q="SEED-0000001"),
    instances.Filters(q="SEED"),
    instances.Filters(q="EVERYBODY", status="live"),
    instances.Filters(step="agent_decides", status="waiting"),
    instances.Filters(version="1", definition="support-inquiry"),
    instances.Filters(version="1", status="live"),
    instances.Filters(version="1", status="failed", definition="order-listing"),
    instances.Filters(version="1", status="live", q="SEED"),
    instances.Filters(version="1", status="live", step="agent_decides"),
    instances.Filters(status="completed", definition="video-analysis"),
)
@cases("graphs", instances.EACH, 0)
def test_the_parts_of_a_list_are_the_list(
    monkeypatch: pytest.MonkeyPatch, filters: instances.Filters, graphs: int
) -> None:
    monkeypatch.setattr(instances, "EACH", graphs)
    there = list(filters.applied().order_by("-pk").values_list("pk", flat=True))

    for sort in ("", "oldest"):
        seen = [row.pk for row in walked(replace(filters, sort=sort), 40)]
        assert seen == (there[::-1] if sort else there)


def test_what_all_are_called_by_stays_in_its_list() -> None:
    some = [str(one.pk) for one in ProcessInstance.objects.order_by("pk")[:9]]
    shown = pages.refresh_rows(instances.Filters(q="EVERYBODY"), some)
    assert shown.gone == frozenset()


def test_status_says_that_there_may_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.setup_status.MOST", BOUND)

    found = {
        row["name"]: row for row in setup_figures()["definitions"] if row["statuses"]
    }

    inquiry = found["support-inquiry"]
    assert inquiry["at_least"] == ["live", "ended"]
    assert sum(inquiry["statuses"].values()) == 2 * BOUND


def _asked(client: Client, path: str) -> list[tuple[str, Any]]:
    def get() -> None:
        assert client.get(path).status_code in (200, 302), path

    return _statements(get)


def _statements(action: Callable[[], object]) -> list[tuple[str, Any]]:
    """What an action asks of the tables."""
    with noting() as asked:
        action()
    reads = re.compile(r"\s*SELECT.*orchestrator_", re.DOTALL)
    return [(sql, params) for sql, params in asked if reads.match(sql)]


LARGE = words(
    "processinstance steprun checkpoint inboxevent issuedcommand operatoraction bulkitem outsideid"
)


def _looked_at(sql: str, params: Any) -> str:
    """Say how a statement looks at more rows of a large table than it may; "" when it does not."""
    if connection.vendor == "sqlite":
        return _scanned(sql)
    # Of few rows PostgreSQL would read all, and sort all that it believes to be few, whatever indexes there are.
    for settings in ("enable_seqscan", "enable_seqscan enable_sort"):
        if not (wrong := ", ".join(_too_many(_plan(sql, params, settings.split())))):
            break
    return wrong


def _plan(sql: str, params: Any, turned_off: list[str]) -> dict[str, Any]:
    with transaction.atomic(), connection.cursor() as cursor:
        for name in turned_off:
            cursor.execute(f"SET LOCAL {name} = off")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        plan = cursor.fetchone()[0]
        transaction.set_rollback(True)  # else it would stay off for the whole test
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return cast(dict[str, Any], plan[0]["Plan"])


def _too_many(plan: dict[str, Any]) -> Iterator[str]:
    name = plan.get("Relation Name", "")
    rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    looked_at = rows * plan["Actual Loops"]
    # Each of the rows of one look may have some rows of its own.
    if name.removeprefix("orchestrator_") in LARGE and looked_at > 20 * BOUND + 200:
        yield f"{plan['Node Type']} looks at {looked_at} rows of {name}"
    for part in plan.get("Plans", []):
        yield from _too_many(part)


@cache
def _scanned(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("%s"))
        steps = [row[3] for row in cursor.fetchall()]
    # Walking an index for the order alone ends with the page.
    walks = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
    if "LIMIT" in sql:
        return ""
    tables = {step: step.split()[1].removeprefix("orchestrator_") for step in walks}
    return ", ".join(step for step, table in tables.items() if table in LARGE)
