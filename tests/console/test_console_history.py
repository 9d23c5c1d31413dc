"""S4, the history: marks of commits, links to what a row led to, all of it as JSON lines, and no foreign row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.process.history import history_lines
from monitoring.process.history.history import history_of
from monitoring.process.revision.moment import process_moment
from orchestrator.engine import operations
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.patterns.desk import insist, launch
from tests.apps.random_graphs.processes import RandomGraph
from tests.browser.orders import created_outside
from tests.conftest import of
from tests.services.asking import asked
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import rows_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(RandomGraph):
        yield


def test_s4_1_an_action_and_its_transition_have_one_commit_mark(admin: Client) -> None:
    process = placed()
    operations.retry(process.pk, request=asked())

    page = history_of(process_moment(process))

    (action,) = (entry for entry in page.entries if entry.kind == "action")
    (moved,) = (e for e in page.entries if e.revision == action.commit)
    assert action.commit is not None
    assert moved.at == action.at
    text = admin.read(f"/processes/{process.pk}/")
    assert text.count(f'data-commit="{action.commit}"') == 2
    run()


def test_s4_2_a_deadlines_step_leads_to_the_row_of_its_passing(admin: Client) -> None:
    process = placed()
    pass_time(minutes=11)
    process.refresh_from_db()
    passed = process.checkpoints.get(cause__startswith="deadline:").revision

    page = history_of(process_moment(process))

    (entered,) = (entry for entry in page.entries if entry.revision == 1)
    assert entered.leads_to == passed
    text = admin.read(f"/processes/{process.pk}/")
    assert f"#revision-{passed}" in text
    assert f'id="revision-{passed}"' in text
    assert f"#revision-{passed}" not in admin.read(f"/processes/{process.pk}/?at=1")


def test_s4_2_a_failed_attempt_leads_to_the_row_in_which_its_step_was_settled() -> None:
    failures = {}
    for seed in range(20):
        process = insist(launch(RandomGraph, seed, 25), 4)
        rows = process.checkpoints.filter(cause__startswith="failure:steprun")
        failures = {row.revision: row.step_run for row in rows}
        if failures:
            break
    page = history_of(process_moment(process))

    shown = {e.revision: e.leads_to for e in page.entries if e.revision in failures}
    assert shown
    for revision, led_to in shown.items():
        left = process.step_runs.get(pk=str(failures[revision])).left
        assert led_to == (left if left != revision else None)


def test_s4_4_the_whole_history_comes_as_json_lines_a_few_rows_at_a_time(
    admin: Client, stranger: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_lines, "AT_ONCE", 2)
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    created_outside(order)
    run()
    process = ProcessInstance.objects.get(pk=order.process_id)
    address = f"/processes/{process.pk}/history.jsonl"

    lines = rows_of(admin, address)

    assert process.revision > 3
    assert [one["revision"] for one in lines] == [*range(1, process.revision + 1)]
    assert lines[0]["event"]["type"] == "OrderCreated"
    assert lines[0]["commands"][0]["type"] == "RequestExternalCreation"
    assert lines[-1]["status"] == process.status == "completed"
    assert lines[-1]["data"] == process.data
    assert len(list(history_lines.history_lines(process))) == -(-process.revision // 2)
    of(stranger).read(address, status=403)


def test_s4_4_the_former_addresses_of_a_history_lead_to_it(admin: Client) -> None:
    page = f"/processes/{placed(Destination.INTERNAL, 'first', 'O-1').pk}"

    file = admin.get(f"{page}/ledger.jsonl")
    rows = admin.get(f"{page}/ledger-rows?before=2&at=1")

    assert (file.status_code, file["Location"]) == (302, f"{page}/history.jsonl")
    assert rows["Location"] == f"{page}/history-rows?before=2&at=1"


def test_s4_5_two_processes_of_one_key_are_never_merged(admin: Client) -> None:
    one = placed(Destination.INTERNAL, "first", "O-1")
    other = placed(Destination.INTERNAL, "second", "O-2")
    rows = ProcessInstance.objects.filter(pk=other.pk)
    rows.update(correlation_key=one.correlation_key)
    other.events.filter(verdict="started").update(correlation_key=one.correlation_key)

    for process, own, foreign in ((one, "first", "second"), (other, "second", "first")):
        address = f"/processes/{process.pk}/"
        lines = admin.read(f"{address}history.jsonl")
        assert lines.count("\n") == process.revision
        for text in (lines, admin.read(address), admin.read(f"{address}?at=1")):
            assert own in text
            assert foreign not in text
