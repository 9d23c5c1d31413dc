"""S3.5: the elements of a map are searched and paged by their numbers, whatever their number; also nested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from typing import Any
from uuid import UUID

import pytest

from monitoring.process.steps import elements
from monitoring.process.steps.elements import (
    ElementPage,
    VisitFilters,
    element_batches,
    element_page,
    element_text,
)
from orchestrator import send_event, start_process
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.models.step_run import HELD
from orchestrator.testing import registered, run
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.apps.nested_maps.processes import Inventory, Shop, Signed, Stocktaking
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.explained import explained
from tests.services.reading import all_rows, rows_of

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


def found(
    instance: ProcessInstance, after: str = "", node: str = "read_page", **narrowed: Any
) -> ElementPage:
    shown = element_page(instance, VisitFilters(node, runs=after, **narrowed))
    assert shown is not None
    return shown


def numbers(shown: ElementPage) -> list[int | None]:
    return [run.item for run in shown.rows]


def test_s3_5_elements_are_paged_by_number_without_gap_or_repeat() -> None:
    instance = inquiry(pages=75)
    rows = all_rows(lambda after: found(instance, after))
    assert [run.item for run in rows] == list(range(75))


def test_s3_5_an_element_is_found_by_number_key_status_and_error(
    large: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "SECONDS", 60)
    expected = {
        **dict.fromkeys(("#8123", "page 8123", "8123", "頁8123"), [8123]),  # noqa: RUF024  they are only read
        "TORN 70": [7000],
        **{text: [] for text in ("%", "x", "#77777")},
    }
    assert {text: numbers(found(large, search=text)) for text in expected} == expected
    assert numbers(found(large, state="failed")) == [7000, 9999]
    assert numbers(found(large, state="open")) == []
    assert found(large, search="torn", state="done").older == ""


def test_s3_5_a_page_looks_at_so_many_or_so_long_and_says_where_it_stopped(
    large: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "SECONDS", 0)
    assert found(large, state="failed").looked_to == 999
    monkeypatch.setattr(elements, "MOST", 3_000)
    monkeypatch.setattr(elements, "SECONDS", 60)
    steps, after = list[object](), ""
    while after or not steps:
        shown = found(large, after, state="failed")
        steps.append((numbers(shown), shown.looked_to))
        after = shown.older
    assert steps == [([], 2999), ([], 5999), ([7000], 8999), ([9999], None)]


def test_s3_5_it_goes_along_the_index_of_elements_and_reads_some_at_a_time(
    large: ProcessInstance, django_assert_num_queries: Any
) -> None:
    with explained() as plans:
        for search in ("", "#9000", "nothing like it"):
            found(large, search=search)
    looks = [plan for plan in plans if "item" in plan.lower() or "element" in plan]
    assert looks
    for plan in looks:
        assert any(name in plan for name in INDEXES), plan
    assert large.definition.pk  # which the page has read with the process
    parts = element_batches(large, VisitFilters("read_page"))
    with django_assert_num_queries(2):  # the map, and the first part
        assert len(next(parts)) == elements.AT_ONCE


def test_s3_5_the_split_counts_what_is_settled_and_open(large: ProcessInstance) -> None:
    parts = [(one.status, one.number, one.state) for one in found(large).parts]
    assert parts == [("done", "9,998", "done"), ("handled", "2", "failed")]


def test_s3_5_while_it_goes_on_the_split_tells_what_is_under_way() -> None:
    receipt = start_process(Inquiry, Inquiry.Input("T-1", pages=5))
    instance = ProcessInstance.objects.get(pk=receipt.process_id)
    assert element_page(instance, VisitFilters("read_page")) is None
    run()
    visits = StepRun.objects.filter(instance=instance, node="read_page")
    progress = {"done": 3, "failed": 0, "total": 5}
    visits.filter(item=None).update(finished_at=None, progress=progress)
    visits.filter(item__lt=2).update(finished_at=None, status="running")
    shown = [(one.status, one.number) for one in found(instance).parts]
    assert shown == [("done", "3"), ("running", "2")]
    assert numbers(found(instance, state="open")) == [0, 1]


def test_s3_5_the_file_is_the_list(large: ProcessInstance, operating: Client) -> None:
    place = f"/processes/{large.pk}/elements"
    first, second = rows_of(operating, f"{place}.jsonl?step=read_page&state=failed")
    assert (first["element"], second["element"]) == (7000, 9999)
    assert (first["key"], first["error"]) == ("page 7000 頁7000", "E: torn 7000")
    text = operating.read(f"{place}.csv?step=read_page")
    assert len(text.splitlines()) == MANY + 1
    operating.read(f"{place}.xml?step=read_page", status=404)
    assert operating.read(f"{place}.jsonl?step=nothing") == ""


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
def test_s3_5_nothing_asked_ends_in_an_error(query: str, operating: Client) -> None:
    instance = inquiry(pages=3)
    for place in ("", "elements.csv"):
        operating.read(f"/processes/{instance.pk}/{place}?step=read_page{query}")


def test_s3_5_each_visit_of_a_map_in_a_loop_has_its_own_list() -> None:
    instance = inquiry(pages=2)
    for row in StepRun.objects.filter(instance=instance, node="read_page"):
        row.pk, row.visit = None, 2
        row.save(force_insert=True)
    last, first = found(instance), found(instance, visit="1")
    seen = [(shown.head.visit, shown.other_visits) for shown in (last, first)]
    assert seen == [(2, [1]), (1, [2])]
    assert numbers(first) == numbers(last) == [0, 1]
    assert {run.visit for run in first.rows} == {1}


def test_s3_5_maps_within_maps_waits_and_sub_processes(page_of: Read) -> None:
    names = [f"棚{number}" for number in range(35)]
    receipt = start_process(Inventory, Shop(names, broken="棚3/1"))
    run()
    outer = ProcessInstance.objects.get(pk=receipt.process_id)
    node = StepRun.objects.get(instance=outer, kind="map").node

    def shelf(search: str, number: int) -> StepRun:
        rows = found(outer, node=node, search=search).rows
        return next(run for run in rows if run.item == number)

    last = shelf("棚34", 34)
    assert json.loads(element_text(last))["shelf"] == "棚34"
    text = page_of(outer, f"?step={node}&search=棚34")
    assert f"/processes/{last.child_id}/" in text  # one click to what it is at
    inner = page_of(last.child, "?step=count_box")
    assert "3 elements in all" in inner
    assert "棚34/2" in inner
    assert "Signature" in page_of(last.child, "")
    broken = page_of(shelf("棚3", 3).child, "?step=count_box&state=failed")
    assert "棚3/1 is broken open" in broken

    send_event(Signed("ann"), id="signed", process_id=last.child_id)
    run()
    assert shelf("#34", 34).status == "done"


def test_a_map_that_begins_no_further_element_says_so(page_of: Read) -> None:
    instance = inquiry(pages=3)
    head = StepRun.objects.get(instance=instance, node="read_page", item=None)
    said = "The others begin once these are retried or skipped."
    assert said not in page_of(instance, "?step=read_page")
    progress = {**(head.progress or {}), HELD: True}
    StepRun.objects.filter(pk=head.pk).update(progress=progress, finished_at=None)

    assert said in page_of(instance, "?step=read_page")
