"""S10.1: processes are found by the ids that others have for them, as their data says now."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection

from monitoring.lists.processes import arm
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page, refresh_rows
from orchestrator import send_event, start_process
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import OPERATIONS, ActionRequest
from orchestrator.engine.storage import pruning
from orchestrator.models import OutsideId, ProcessInstance
from orchestrator.testing import run, started
from orchestrator.testing.clock import move_times_back
from tests.apps.outside_ids.processes import (
    Arrived,
    Assessment,
    Claim,
    Delivery,
    Noted,
    Ordered,
    PlainDelivery,
    Relabelled,
)
from tests.browser.samples import HARMFUL
from tests.services.client import Client, Read
from tests.services.crews import knowing
from tests.services.invariants import undone
from tests.services.noting import noting
from tests.services.paging import walked
from tests.services.pruned import prune

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("deliveries")]

deliveries = knowing(Delivery, PlainDelivery, Assessment, autouse=False)


def ordered(
    order: str, *parcels: str, customer: int = 7, of: Any = Delivery, **more: Any
) -> ProcessInstance:
    return started(of, Ordered(order, list(parcels), customer, **more)).instance


def tell(process: ProcessInstance, event: Any) -> None:
    send_event(event, id=str(uuid4()), process_id=process.pk)
    run()


def ids(process: ProcessInstance) -> list[str]:
    rows = OutsideId.objects.filter(instance=process)
    return sorted(f"{row.field} {row.value}" for row in rows)


def test_s10_1_a_process_is_found_by_each_of_its_outside_ids(ask: Read) -> None:
    one = ordered("D-1", "P-1", "P-2", customer=4711, tracking="TR 9")
    ordered("D-2", "P-3", customer=12)

    there = f"/processes/{one.pk}/"
    assert [ask(text) for text in ("P-1", " P-2 ", "4711", "TR 9")] == [there] * 4
    assert "Nothing is called so" in ask("P-")  # an id is known, and copied whole


def test_an_outside_id_that_the_data_lacks_is_found() -> None:
    one = ordered("D-1", "P-1", customer=4711)
    assert violations() == []

    with undone():
        OutsideId.objects.filter(instance=one, value="P-1").update(value="P-2")
        lacks = f"stale_ids: {one.pk} is found by the"
        assert [lacks in line for line in violations()] == [True]


def test_s10_1_several_that_have_the_id_are_listed_and_say_which_it_is(
    ask: Read, operating: Client
) -> None:
    for number in range(7):
        ordered(f"D-{number}", f"P-{number}", customer=4711)
    ordered("4711", "P-9", customer=1)

    place = ask("4711")

    assert place == "/processes/?q=4711"
    assert len(process_page(Filters(q="4711")).rows) == 8
    rows = operating.read(place)
    assert all(f"D-{number}" in rows for number in range(7))


def test_s10_1_the_find_page_names_the_field(ask: Read) -> None:
    one = ordered("D-1", "P-1", customer=4711)
    send_event(Noted("D-9", "x"), id="4711", process_id=uuid4())
    run()

    page = ask("4711")

    assert "delivery · customer 4711" in page
    assert str(one.pk) in page


def test_s10_1_a_list_of_an_outside_id_is_narrowed_as_any_other() -> None:
    there, underway = ordered("D-1", "P-1"), ordered("D-2", "P-1")
    tell(there, Arrived("D-1"))
    narrowed: tuple[tuple[dict[str, Any], list[ProcessInstance]], ...] = (
        ({}, [underway, there]),
        ({"status": "live"}, [underway]),
        ({"status": "completed"}, [there]),
        ({"step": "There"}, [there]),
        ({"step": "Underway"}, [underway]),
        ({"definition": "delivery", "version": "1"}, [underway, there]),
        ({"definition": "plain-delivery"}, []),
        ({"owner": "me"}, []),
    )
    for by, found in narrowed:
        assert list(process_page(Filters(q="P-1", **by)).rows) == found, by
    shown = [str(there.pk), str(underway.pk)]
    filters = Filters(q="P-1", status="live")
    assert refresh_rows(filters, shown).gone == {there.pk}


def test_s10_1_the_pages_of_many_with_one_id_show_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arm, "LOOKED_AT", 3)
    all_ = {ordered(f"D-{n}", "P-1", "P-1").pk for n in range(8)}

    seen = [row.pk for row in walked(Filters(q="P-1"), 2)]
    assert seen == sorted(all_, reverse=True)


def test_s10_1_the_ids_are_those_that_the_data_says_now(ask: Read) -> None:
    one = ordered("D-1", "P-1", "P-2", tracking="TR")
    assert ids(one) == ["customer 7", "parcels P-1", "parcels P-2", "tracking TR"]

    tell(one, Relabelled("D-1", ["P-2", "P-3"], None))

    assert ids(one) == ["customer 7", "parcels P-2", "parcels P-3"]
    assert ask("P-3") == f"/processes/{one.pk}/"
    assert "Nothing is called so" in ask("P-1")

    tell(one, Relabelled("D-1", [], "TR"))
    assert ids(one) == ["customer 7", "tracking TR"]
    tell(one, Arrived("D-1"))
    assert ask("TR") == f"/processes/{one.pk}/"


def test_s10_1_a_workflow_has_those_of_its_input(ask: Read) -> None:
    claim = uuid4()
    process = start_process(Assessment, Claim(claim, "V-1")).process_id
    again = start_process(Assessment, Claim(uuid4(), "V-2"), id="2").process_id
    start_process(Assessment, Claim(claim, "V-2"), id="3")
    run()

    assert ask("V-1") == f"/processes/{process}/"
    assert ask("V-2") == "/processes/?q=V-2"
    assert ask(str(claim)) == f"/processes/?q={claim}"
    assert again is not None


def test_s10_1_only_ids_are_kept_and_long_and_hostile_ones_are_found(ask: Read) -> None:
    long = "P" * 300
    one = ordered("D-1", "", "  ", long, *HARMFUL, tracking=None)

    assert len(ids(one)) == 2 + len({text.strip()[:200] for text in HARMFUL})
    assert ask(long) == f"/processes/{one.pk}/"
    assert all(ask(text) == f"/processes/{one.pk}/" for text in HARMFUL)


def test_s10_1_of_a_long_list_the_first_hundred_are_kept(ask: Read) -> None:
    one = ordered("D-1", *(f"P-{number}" for number in range(2_000)))

    assert len(ids(one)) == 101
    assert ask("P-99") == f"/processes/{one.pk}/"


def statements(action: Callable[[], object]) -> list[str]:
    with noting() as asked:
        action()
    return [sql for sql, _ in asked if "outsideid" in sql]


def test_s10_1_a_definition_without_any_writes_none_and_asks_nothing_more() -> None:
    plain, one = ordered("D-1", "P-1", of=PlainDelivery), ordered("D-2", "P-2")

    of_plain = statements(lambda: tell(plain, Relabelled("D-1", ["P-8"], "T")))
    unchanged = statements(lambda: tell(one, Noted("D-2", "at the gate")))
    of_ids = statements(lambda: tell(one, Relabelled("D-2", ["P-9"], "T")))

    assert of_plain + unchanged == []
    if connection.vendor == "postgresql":  # a part of the message that has the data
        assert len(of_ids) == 1
        assert 'INSERT INTO "orchestrator_checkpoint"' in of_ids[0]
    else:
        assert len(of_ids) == 2  # what is gone, and what is new
    assert ids(plain) == []


def test_s10_1_they_are_removed_with_their_process() -> None:
    one, other = ordered("D-1", "P-1"), ordered("D-2", "P-2")
    tell(one, Arrived("D-1"))
    move_times_back(timedelta(days=365), [one.pk])

    prune("--keep", "30")

    assert set(OutsideId.objects.values_list("instance", flat=True)) == {other.pk}


def test_s10_1_a_process_that_is_imported_has_them_again(administrator: User) -> None:
    one = ordered("D-1", "P-1")
    before, file = ids(one), io.BytesIO()

    def request() -> ActionRequest:
        return ActionRequest(administrator, uuid4(), "moved")

    OPERATIONS["export"](one.pk, file.write, request=request())  # type: ignore[operator]
    pruning._delete([one.pk])
    assert ids(one) == []
    OPERATIONS["import"](io.BytesIO(file.getvalue()), request=request())  # type: ignore[operator]

    assert ids(one) == before
