"""Lists of processes are in the order of their starts, also where a start was given an id, which has no time."""

from __future__ import annotations

import io
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.utils import timezone

from monitoring.lists.bulk.selections import MatchingProcesses
from monitoring.lists.processes.filters import OLDEST, Filters
from monitoring.lists.processes.pages import process_batches, process_page, refresh_rows
from monitoring.queries.processes import ProcessPlace
from orchestrator import ProcessStart, send_event, start_process, start_processes
from orchestrator.engine.operations import OPERATIONS, ActionRequest
from orchestrator.models import (
    InboxEvent,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.outside_ids.processes import (
    Arrived,
    Assessment,
    Delivery,
    Noted,
    Ordered,
)
from tests.services.cases import cases
from tests.services.crews import knowing
from tests.services.paging import walked

pytestmark = pytest.mark.django_db

deliveries = knowing(Delivery, Assessment)

ALONE, TOGETHER = 8, 6


def ordered(number: int) -> Ordered:
    return Ordered(f"D-{number}", ["P-1"], customer=7)


def start(number: int, key: UUID | None = None) -> UUID:
    known = start_process(Delivery, ordered(number), process_id=key).process_id
    run()
    return known


@pytest.fixture(scope="module", autouse=True)
def started(module_db: None, deliveries: None) -> list[UUID]:
    """Return processes in the order of their starts; the last were started at one moment."""
    found = [start(number, uuid4() if number % 3 else None) for number in range(ALONE)]
    rest = range(ALONE, ALONE + TOGETHER)
    many = (
        ProcessStart(Delivery, ordered(number), process_id=uuid4()) for number in rest
    )
    group = sorted(one.process_id for one in start_processes(many))
    run()
    at = ProcessInstance.objects.get(pk=group[0]).started_at
    ProcessInstance.objects.filter(pk__in=group).update(started_at=at)
    for rows in (StepRun.objects, OutsideId.objects):
        rows.filter(instance__in=group).update(process_started_at=at)
    return [*found, *group]


def keys(rows: Any) -> list[UUID]:
    return [row.pk for row in rows]


def test_the_ids_alone_do_not_tell_the_order(started: list[UUID]) -> None:
    assert sorted(started) != started


FILTERS = cases(
    "narrowed",
    {},
    {"definition": "delivery"},
    {"status": "live"},
    {"definition": "delivery", "status": "live"},
    {"definition": "delivery", "version": "1", "status": "live"},
    {"definition": "delivery", "version": "1"},
    {"step": "Underway"},
    {"step": "Underway", "doing": "here"},
    {"q": "D-"},
    {"q": "P-1"},
    {"q": "7", "status": "live"},
    {"where": "customer = 7"},
    {"owner": "nobody"},
)


@FILTERS
def test_pages_from_either_end_show_each_process_once_in_the_order_of_starts(
    narrowed: dict[str, Any], started: list[UUID]
) -> None:
    for size in (1, 4):
        newest = keys(walked(Filters(**narrowed), size))
        oldest = keys(walked(Filters(**narrowed, sort=OLDEST), size))

        assert newest == started[::-1], size
        assert oldest == started, size


def selected(narrowed: dict[str, str]) -> list[UUID]:
    """Return what a bulk operation on a list freezes, in its order."""
    found, after = list[UUID](), ""
    for _ in range(100):
        part = MatchingProcesses().chunk(narrowed, timezone.now(), after, 4)
        found += [one.target for one in part.found]
        if not (after := part.after):
            return found
    raise AssertionError("it finds no end")


@FILTERS
def test_a_frozen_selection_has_each_process_once(
    narrowed: dict[str, str], started: list[UUID]
) -> None:
    found = selected(narrowed)

    assert sorted(found) == sorted(started)
    if narrowed.get("status") != "live":  # of these each status is a part of its own
        assert found == started[::-1]


def test_a_selection_that_the_release_before_has_begun_begins_again(
    started: list[UUID],
) -> None:
    """That release went on by keys, and what it has frozen is not frozen twice."""
    part = MatchingProcesses().chunk({}, timezone.now(), f"0:{started[3]}", 4)

    assert [one.target for one in part.found] == started[-1:-5:-1]


def test_a_file_of_a_list_goes_on_after_a_process_id(started: list[UUID]) -> None:
    parts = process_batches(Filters(), str(started[5]))

    assert [row.pk for part in parts for row in part] == started[4::-1]


@cases("place", "nonsense", str(uuid4()), "7_x", "x_y", f"nan_{uuid4()}", f"_{uuid4()}")
def test_what_is_no_place_means_the_first_page(place: str, started: list[UUID]) -> None:
    assert process_page(Filters(), place, 1).rows[0].pk == started[-1]


def test_a_place_is_read_as_it_was_written(started: list[UUID]) -> None:
    for row in ProcessInstance.objects.all():
        place = ProcessPlace.of(row)
        assert ProcessPlace.parse(str(place)) == place


@cases("key", None, UUID(int=7), UUID(int=7 << 124))
def test_a_later_start_stands_above_and_is_counted_as_new(
    key: UUID | None, started: list[UUID]
) -> None:
    shown = keys(process_page(Filters(), size=5).rows)

    late = start(99, key)

    same = refresh_rows(Filters(), [str(pk) for pk in shown], 5)
    assert keys(same.rows) == shown
    assert same.new == 1
    assert process_page(Filters(), size=5).rows[0].pk == late


def test_what_is_imported_stands_where_it_was(started: list[UUID]) -> None:
    middle = ProcessInstance.objects.get(pk=started[4])
    boss = User.objects.create_superuser("boss")
    asked = ActionRequest(boss, uuid4(), "moved")
    file = io.BytesIO()
    OPERATIONS["export"](middle.pk, file.write, request=asked)  # type: ignore[operator]
    remove(middle.pk)
    assert keys(process_page(Filters()).rows) == [*started[:4], *started[5:]][::-1]

    again = ActionRequest(boss, uuid4(), "moved")
    OPERATIONS["import"](io.BytesIO(file.getvalue()), request=again)  # type: ignore[operator]

    for by in (Filters(), Filters(q="P-1"), Filters(step="Underway")):
        assert keys(walked(by, 4)) == started[::-1], by


def remove(process: UUID) -> None:
    row = ProcessInstance.objects.get(pk=process)
    OperatorAction.objects.filter(instance=process).delete()
    for rows in (row.events, row.commands, row.incidents):
        rows.all().delete()
    row.delete()


def test_an_event_goes_to_the_newest_of_the_ended_processes_of_its_key() -> None:
    for key in (9, 8):
        start(77, UUID(int=key))
        send_event(Arrived("D-77"), id=str(key))
        run()

    late = send_event(Noted("D-77", "late"), id="late")
    run()

    assert InboxEvent.objects.get(event_id="late").process_id == UUID(int=8)
    assert late.process_id in (None, UUID(int=8))


def test_visits_and_outside_ids_have_the_start_of_their_process() -> None:
    here = {"process_started_at": F("instance__started_at")}

    for rows in (StepRun.objects.filter(item=None), OutsideId.objects.all()):
        assert rows.exists()
        assert not rows.exclude(**here).exists()


def test_rows_of_the_release_before_get_the_start_of_their_process() -> None:
    """That release leaves the column to the database, which sets the time of the row."""
    migration = import_module("orchestrator.migrations.0041_newest_first")
    for rows in (StepRun.objects.all(), OutsideId.objects.all()):
        rows.update(process_started_at=timezone.now())

    migration.fill_starts(apps, SimpleNamespace(connection=connection))

    here = {"process_started_at": F("instance__started_at")}
    shown = StepRun.objects.filter(finished_at=None, item=None)
    for rows in (shown, OutsideId.objects.all()):
        assert not rows.exclude(**here).exists()


def written_by_the_release_before(started: list[UUID]) -> list[UUID]:
    """Give the visits and outside ids of every second process a moment of their own; return these processes."""
    late = started[1::2]
    for rows in (StepRun.objects, OutsideId.objects):
        rows.filter(instance__in=late).update(process_started_at=timezone.now())
    return late


BESIDE = cases("narrowed", {"step": "Underway"}, {"q": "P-1"})


@BESIDE
def test_what_the_release_before_writes_after_the_migration_is_listed_once(
    narrowed: dict[str, Any], started: list[UUID]
) -> None:
    """Its rows have a moment of their own: the processes stand there in lists, and none is missing."""
    late = written_by_the_release_before(started)

    for size in (1, 2, 4):
        newest = keys(walked(Filters(**narrowed), size))
        oldest = keys(walked(Filters(**narrowed, sort=OLDEST), size))
        assert sorted(newest) == sorted(oldest) == sorted(started), size
        assert set(newest[: len(late)]) == set(late)
        assert oldest == newest[::-1]


@BESIDE
def test_what_the_release_before_writes_is_selected_once(
    narrowed: dict[str, str], started: list[UUID]
) -> None:
    written_by_the_release_before(started)

    assert sorted(selected(narrowed)) == sorted(started)


def test_shown_rows_of_the_release_before_do_not_make_others_new(
    started: list[UUID],
) -> None:
    written_by_the_release_before(started)
    narrowed = Filters(step="Underway")
    shown = keys(process_page(narrowed, size=4).rows)

    same = refresh_rows(narrowed, [str(pk) for pk in shown], 4)

    assert (keys(same.rows), same.new) == (shown, 0)
