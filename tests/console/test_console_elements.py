"""S3.5: the elements of a map are searched and paged by their numbers, whatever their number; also nested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from typing import Any
from uuid import UUID

import pytest

from monitoring.queries.instance import elements
from monitoring.queries.instance.elements import (
    ElementFilters,
    ElementPage,
    element_batches,
    element_page,
    element_text,
)
from orchestrator import send_event, start_process
from orchestrator.engine.drain import drain
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import registered
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.apps.nested_maps.processes import Inventory, Shop, Signed, Stocktaking
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.explained import explained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk", "shelves")]

MANY = 10_000

INDEXES = "one_run_per_element", "one_run_per_visit", "visits_by_start"
"""Those that begin with the process, and have the elements in the order of their numbers."""


@pytest.fixture(scope="module")
def shelves() -> Iterator[None]:
    with registered(Stocktaking, Inventory):
        yield


def element(like: StepRun, number: int) -> StepRun:
    """One more element of a map; two of them have failed."""
    row = copy(like)
    row.pk, row.item, row.element = None, number, f"page {number} 頁{number}"
    if number in (7_000, 9_999):
        row.status, row.error, row.result = "failed", f"E: torn {number}", None
    return row


@pytest.fixture(scope="module")
def of_thousands(module_db: None, helpdesk: None, shelves: None) -> UUID:
    """A map of ten thousand elements, two of which failed."""
    instance = inquiry("T-0", pages=3)
    head = StepRun.objects.get(instance=instance, node="read_page", item=None)
    like = StepRun.objects.filter(instance=instance, node="read_page", item=0).get()
    progress = {"done": MANY - 2, "failed": 2, "total": MANY}
    StepRun.objects.filter(pk=head.pk).update(expected=MANY, progress=progress)
    rows = [element(like, number) for number in range(3, MANY)]
    StepRun.objects.bulk_create(rows, batch_size=500)
    return instance.pk


@pytest.fixture
def large(of_thousands: UUID) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=of_thousands)


@pytest.fixture(autouse=True)
def invariants() -> None:
    """Ask for none: most of these elements are not the engine's."""


def found(instance: ProcessInstance, **narrowed: Any) -> ElementPage:
    shown = element_page(instance, ElementFilters("read_page", **narrowed))
    assert shown is not None
    return shown


def numbers(shown: ElementPage) -> list[int | None]:
    return [run.item for run in shown.rows]


def test_s3_5_elements_are_paged_by_number_without_gap_or_repeat() -> None:
    instance, seen, after = inquiry(pages=75), list[int | None](), ""
    for _ in range(4):
        shown = element_page(instance, ElementFilters("read_page"), after)
        assert shown is not None
        seen += numbers(shown)
        after = shown.older
        if not after:
            break
    assert seen == list(range(75))


def test_s3_5_an_element_is_found_by_number_key_status_and_error(
    large: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "SECONDS", 60)
    assert numbers(found(large, search="#8123")) == [8123]
    assert numbers(found(large, search="page 8123")) == [8123]
    assert numbers(found(large, search="8123")) == [8123]
    assert numbers(found(large, search="頁8123")) == [8123]
    assert numbers(found(large, search="TORN 70")) == [7000]
    assert numbers(found(large, state="failed")) == [7000, 9999]
    assert numbers(found(large, state="open")) == []
    assert numbers(found(large, search="%")) == numbers(found(large, search="x")) == []
    assert numbers(found(large, search="#77777")) == []
    assert found(large, search="torn", state="done").older == ""


def test_s3_5_a_page_looks_at_so_many_and_says_where_it_stopped(
    large: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "MOST", 3_000)
    monkeypatch.setattr(elements, "SECONDS", 60)
    shown, steps = found(large, state="failed"), []
    while shown.older:
        steps.append((numbers(shown), shown.looked_to))
        filters = ElementFilters("read_page", state="failed")
        then = element_page(large, filters, shown.older)
        assert then is not None
        shown = then
    assert steps == [([], 2999), ([], 5999), ([7000], 8999)]
    assert (numbers(shown), shown.looked_to) == ([9999], None)


def test_s3_5_where_time_is_over_a_page_stops(
    large: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "SECONDS", 0)
    assert found(large, state="failed").looked_to == 999


def test_s3_5_it_goes_along_the_index_of_elements(large: ProcessInstance) -> None:
    with explained() as plans:
        found(large)
        found(large, search="#9000")
        found(large, search="nothing like it")
    looks = [plan for plan in plans if "item" in plan.lower() or "element" in plan]
    assert looks
    for plan in looks:
        assert any(name in plan for name in INDEXES), plan


def test_s3_5_the_split_counts_what_is_settled_and_what_is_open(
    large: ProcessInstance,
) -> None:
    parts = found(large).parts
    assert [(one.status, one.number) for one in parts] == [
        ("done", "9,998"),
        ("handled", "2"),
    ]
    assert [one.state for one in parts] == ["done", "failed"]


def test_s3_5_while_it_goes_on_the_split_tells_what_is_under_way() -> None:
    receipt = start_process(Inquiry, Inquiry.Input("T-1", pages=5))
    instance = ProcessInstance.objects.get(pk=receipt.process_id)
    assert element_page(instance, ElementFilters("read_page")) is None
    StepRun.objects.filter(instance=instance).update(queue="default")
    drain()
    items = StepRun.objects.filter(instance=instance, node="read_page", item__lt=2)
    head = StepRun.objects.filter(instance=instance, node="read_page", item=None)
    head.update(finished_at=None, progress={"done": 3, "failed": 0, "total": 5})
    items.update(finished_at=None, status="running")
    shown = [(one.status, one.number) for one in found(instance).parts]
    assert shown == [("done", "3"), ("running", "2")]
    assert numbers(found(instance, state="open")) == [0, 1]


def test_s3_5_the_file_has_what_the_list_has(
    large: ProcessInstance, operating: Client
) -> None:
    place = f"/processes/{large.pk}/elements"
    lines = b"".join(
        operating.get(f"{place}.jsonl?step=read_page&state=failed")
    ).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["element"] for row in rows] == [7000, 9999]
    assert rows[0]["key"] == "page 7000 頁7000"
    assert rows[0]["error"] == "E: torn 7000"
    text = b"".join(operating.get(f"{place}.csv?step=read_page"))
    assert len(text.splitlines()) == MANY + 1
    assert operating.get(f"{place}.xml?step=read_page").status_code == 404
    assert b"".join(operating.get(f"{place}.jsonl?step=nothing")) == b""


def test_s3_5_the_page_has_the_list_at_the_map(page_of: Read) -> None:
    instance = inquiry(pages=40, trouble="page")
    text = page_of(instance, "?step=read_page")
    shown = text.partition('id="elements"')[2]
    assert "40 elements in all" in shown
    assert "state=failed#runs" in shown
    assert len(re.findall(r'id="run-\d+"', shown)) == 31  # with the map itself
    [there] = re.findall(r'href="(\?[^"]*runs=\d+-\d+)#runs"', shown)
    second = page_of(instance, there.replace("&amp;", "&"))
    assert "page 40" in second
    assert "page 2 is torn" in page_of(instance, "?step=read_page&search=torn")
    assert "No element matches." in page_of(instance, "?step=read_page&search=nothing")
    assert 'id="elements"' not in page_of(instance, "?step=collect")


@cases(
    "query",
    *words(
        """&runs=x-y &runs=999999999999999999999-1 &runs=%00 &visit=999999999999 &visit=-1
        &visit=² &search=%23999999999999999 &search=%23² &search=²
        &search=%00%25_%5C &state=nothing"""
    ),
)
def test_s3_5_nothing_that_is_asked_ends_in_an_error(
    query: str, operating: Client
) -> None:
    instance = inquiry(pages=3)
    for place in ("", "elements.csv"):
        answer = operating.get(
            f"/processes/{instance.pk}/{place}?step=read_page{query}"
        )
        assert answer.status_code == 200
        list(answer)


def test_s3_5_each_visit_of_a_map_in_a_loop_has_its_own_list() -> None:
    instance = inquiry(pages=2)
    for run in StepRun.objects.filter(instance=instance, node="read_page"):
        run.pk, run.visit = None, 2
        run.save(force_insert=True)
    last, first = found(instance), found(instance, visit=1)
    assert (last.head.visit, last.other_visits) == (2, [1])
    assert (first.head.visit, first.other_visits) == (1, [2])
    assert numbers(first) == numbers(last) == [0, 1]
    assert {run.visit for run in first.rows} == {1}


def test_s3_5_maps_within_maps_waits_and_sub_processes(page_of: Read) -> None:
    names = [f"棚{number}" for number in range(35)]
    receipt = start_process(Inventory, Shop(names, broken="棚3/1"))
    drain()
    outer = ProcessInstance.objects.get(pk=receipt.process_id)
    [node] = StepRun.objects.filter(instance=outer, kind="map").values_list(
        "node", flat=True
    )
    shown = element_page(outer, ElementFilters(node, search="棚34"))
    assert shown is not None
    [run] = shown.rows
    assert json.loads(element_text(run))["shelf"] == "棚34"
    assert run.child is not None

    text = page_of(outer, f"?step={node}&search=棚34")
    assert f"/processes/{run.child_id}/" in text  # one click to what it is at
    inner = page_of(run.child, "?step=count_box")
    assert "3 elements in all" in inner
    assert "棚34/2" in inner
    assert "Signature" in page_of(run.child, "")

    failed = element_page(outer, ElementFilters(node, search="棚3"))
    assert failed is not None
    broken = next(run for run in failed.rows if run.item == 3)
    assert broken.child is not None
    assert "棚3/1 is broken open" in page_of(
        broken.child, "?step=count_box&state=failed"
    )

    send_event(Signed("ann"), id="signed", process_id=run.child_id)
    drain()
    again = element_page(outer, ElementFilters(node, search="#34"))
    assert again is not None
    assert again.rows[0].status == "done"


def test_s3_5_all_is_read_some_at_a_time(
    large: ProcessInstance, django_assert_num_queries: Any
) -> None:
    assert large.definition.pk  # which the page has read with the process
    parts = element_batches(large, ElementFilters("read_page"))
    with django_assert_num_queries(2):  # the map, and the first part
        assert len(next(parts)) == elements.AT_ONCE
