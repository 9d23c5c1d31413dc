"""S2.1, S9.5: the numbers of a window are those of the rows, in random worlds and beside very many rows of others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from monitoring.definition.filters import MapFilters
from monitoring.definition.page import definition_page
from monitoring.lists.events.event_volume import event_volume
from monitoring.lists.processes.filters import Filters
from monitoring.queries import recent_rows, window
from monitoring.queries.activity import WINDOWS
from monitoring.queries.window import Window, read_window
from orchestrator.definition.graph import Graph, Node
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from tests.services.cases import cases
from tests.services.explained import explained
from tests.services.sizes import size

pytestmark = pytest.mark.django_db

FOREIGN = size(usual=4_000, full=200_000)
"""The transitions of other definitions."""

NODES = ["pack", "check", "send"]
KINDS = [StepKind.STEP] * 6 + [StepKind.WAIT, StepKind.JOIN, StepKind.UNDO]
ENDS = [StepStatus.DONE] * 5 + [
    *(StepStatus.SKIPPED, StepStatus.FAILED, StepStatus.CANCELLED),
    StepStatus.NOT_TAKEN,
]


@pytest.fixture(autouse=True)
def invariants() -> None:
    """The rows are made here, not by processes."""


@dataclass
class World:
    """Processes of some definitions, with visits at random times.

    Args:
        random: decides all.
        definitions: the stored definitions.
        by_earlier_release: the share of visits and failures without the key of their definition.
        number: the number of processes.
    """

    random: Random
    definitions: list[Definition]
    by_earlier_release: float = 0.0
    number: int = 60

    def __post_init__(self) -> None:
        self.now = timezone.now()
        self.received: list[tuple[str, datetime]] = []
        self.processes = [
            ProcessInstance(
                definition=self.random.choice(self.definitions),
                name=self.definitions[0].name,
                status=Status.RUNNING,
                started_at=self.now,
                changed_at=self.now,
            )
            for _ in range(self.number)
        ]
        ProcessInstance.objects.bulk_create(self.processes)

    def visits(self, number: int, *, days: float = 9) -> None:
        """Add visits; later ones may be older, as an import's are."""
        StepRun.objects.bulk_create(self._visit(days) for _ in range(number))

    def failures(self, number: int) -> None:
        Incident.objects.bulk_create(
            Incident(
                kind=self.random.choice(["step_failed", "unexpected_event"]),
                step=self.random.choice(["", *NODES]),
                opened_at=self._moment(9),
                **self._of_process(),
            )
            for _ in range(number)
        )

    def _visit(self, days: float) -> StepRun:
        random, ended = self.random, self._moment(days)
        element = random.random() < 0.1
        own = self._of_process()
        return StepRun(
            node=random.choice(NODES),
            kind=StepKind.ITEM if element else random.choice(KINDS),
            item=random.randrange(10**9) if element else None,
            visit=random.randrange(10**9),
            status=random.choice(ENDS),
            redo=random.random() < 0.1,
            started_at=ended - timedelta(seconds=random.randrange(100)),
            finished_at=ended if random.random() < 0.9 else None,
            **(own | {"stored_definition_id": None} if element else own),
        )

    def _of_process(self) -> dict[str, Any]:
        process = self.random.choice(self.processes)
        earlier = self.random.random() < self.by_earlier_release
        stored = None if earlier else process.definition_id
        return {"instance": process, "stored_definition_id": stored}

    def _moment(self, days: float) -> datetime:
        """Return a moment, many of them lately."""
        ago = timedelta(days=days) * self.random.random() ** 3
        return self.now - ago

    def finished(self, definition: Definition, name: str, node: str) -> set[Any]:
        """Return the processes that finished a step in a window, from all rows."""
        mine = {one.pk for one in self.processes if one.definition_id == definition.pk}
        since = self.now - WINDOWS[name]
        return {
            run.instance_id
            for run in StepRun.objects.filter(node=node, instance__in=mine)
            if run.finished_at is not None
            and run.finished_at >= since
            and run.status in ("done", "skipped", "failed")
            and run.kind not in ("join", "undo", "item")
            and not run.redo
        }

    def failed(self, definition: Definition, name: str, node: str) -> set[Any]:
        mine = {one.pk for one in self.processes if one.definition_id == definition.pk}
        since = self.now - WINDOWS[name]
        return {
            one.instance_id
            for one in Incident.objects.filter(step=node, kind="step_failed")
            if one.instance_id in mine and one.opened_at >= since
        }


@pytest.fixture
def made() -> Callable[..., World]:
    """Makes a world of two versions, decided by a number."""

    def make(seed: int, earlier: float = 0.0, number: int = 60) -> World:
        nodes = tuple(Node(one, one, "step") for one in NODES)
        rows = []
        for version in (1, 2):
            graph = Graph(f"parcels-{seed}", version, "workflow", nodes, ())
            row = Definition.objects.create(
                name=graph.name,
                version=version,
                kind=graph.kind,
                fingerprint=graph.fingerprint(),
                graph=graph.to_json(),
            )
            rows.append(row)
        return World(Random(seed), rows, earlier, number)

    return make


def foreign(world: World) -> None:
    """Add very many transitions of other definitions, of the last minutes."""
    other = Definition.objects.create(
        name="others", version=1, kind="workflow", fingerprint="others", graph={}
    )
    [process] = ProcessInstance.objects.bulk_create(
        [
            ProcessInstance(
                definition=other,
                name="others",
                status=Status.RUNNING,
                started_at=world.now,
                changed_at=world.now,
            )
        ]
    )
    first = {"instance": process, "status": "done"}
    run = StepRun.objects.create(
        **first,
        node=NODES[0],
        kind=StepKind.STEP,
        stored_definition=other,
        started_at=world.now,
        finished_at=world.now,
    )
    told = Checkpoint.objects.create(
        **first, revision=1, cause="1", steps={}, data={}, checksum="", at=world.now
    )
    multiplied(run, visit="visit + n.number")
    multiplied(told, revision="revision + n.number", cause="'c' || n.number")


def multiplied(row: Any, **other: str) -> None:
    """Copy a row very many times, with other values of some columns, in SQL."""
    table = row._meta.db_table
    columns = [
        (field.column, other.get(field.name, f"r.{field.column}"))
        for field in row._meta.concrete_fields
        if not field.primary_key
    ]
    names = ", ".join(f'"{name}"' for name, _ in columns)
    values = ", ".join(value for _, value in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO {table} ({names})
            WITH RECURSIVE n(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < %s)
            SELECT {values} FROM n CROSS JOIN {table} AS r WHERE r.id = %s
            """,  # noqa: S608
            [FOREIGN, row.pk],
        )


def each_step(world: World) -> Iterator[tuple[Definition, str, str, Window]]:
    for definition in world.definitions:
        for name in WINDOWS:
            found = read_window(definition, name)
            for node in NODES:
                yield definition, name, node, found


def test_s2_1_numbers_are_exact_beside_very_many_transitions_of_others(
    made: Callable[..., World],
) -> None:
    """Also of visits and failures that an earlier release has written, and of those that have just been imported."""
    worlds = [made(1), made(2, earlier=0.3), made(3, earlier=1.0)]
    for world in worlds:
        world.visits(400)
        world.failures(60)
    foreign(worlds[0])
    for world in worlds:
        for definition, name, node, found in each_step(world):
            figures = found.of((node,))
            told = (definition.fingerprint, name, node)
            finished = world.finished(definition, name, node)
            assert found.finished(figures).number == len(finished), told
            assert str(found.finished(figures)) == str(len(finished)), told
            assert len(figures.failed) == len(world.failed(definition, name, node)), (
                told
            )


def test_s2_2_the_list_that_a_number_opens_has_as_many_processes(
    made: Callable[..., World],
) -> None:
    world = made(4, earlier=0.1)
    world.visits(300)
    for version in ("1", "2"):
        for name in WINDOWS:
            given = MapFilters(definition="parcels-4", version=version, window=name)
            rows = list(definition_page("parcels-4", given).steps)
            assert [row.part.label for row in rows] == NODES
            for row in rows:
                there = Filters(
                    definition="parcels-4",
                    version=version,
                    step=row.part.id,
                    doing=f"left-{name}",
                )
                assert row.texts["finished"] == str(there.applied().count() or "")


def test_s2_1_a_window_is_read_along_its_index(made: Callable[..., World]) -> None:
    world = made(5)
    world.visits(100)
    world.failures(20)
    with explained() as plans:
        read_window(world.definitions[0], "day")
    visits, failures = (
        "\n".join(plan for plan in plans if name in plan)
        for name in ("ended_visits", "failures_of_definition")
    )
    assert visits
    assert failures
    scans = r"(Seq Scan on|SCAN) orchestrator_(steprun|incident)"
    assert not re.search(scans, "\n".join(plans))


def test_s2_1_of_very_many_visits_a_sample_tells_with_its_error(
    made: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nineteen of twenty true numbers are within it; processes that came to a step again are counted once."""
    monkeypatch.setattr(window, "LOOKED_AT", 1_000)
    monkeypatch.setattr(recent_rows, "SAMPLED", 1_000)
    within = []
    for seed in range(size(usual=3, full=20)):
        world = made(10 + seed, number=2_000)
        world.visits(6_000, days=7)
        [definition, _other] = world.definitions
        found = read_window(definition, "week")
        assert found.read.every in (2, 4)
        assert 400 <= found.looked_at <= 1_000
        for node in NODES:
            estimate = found.finished(found.of((node,)))
            true = len(world.finished(definition, "week", node))
            within.append(abs(estimate.number - true) <= estimate.error)
    assert sum(within) >= 0.8 * len(within)


@cases("ago", *range(3, 160, 13))
def test_s2_1_a_burst_is_never_left_out_of_an_estimate(
    made: Callable[..., World], monkeypatch: pytest.MonkeyPatch, ago: int
) -> None:
    """At whatever time of the week it was, with a trickle at all times."""
    monkeypatch.setattr(window, "LOOKED_AT", 800)
    monkeypatch.setattr(recent_rows, "SAMPLED", 400)
    world = made(50, number=1_000)
    [definition, _other] = world.definitions
    mine = [one for one in world.processes if one.definition_id == definition.pk]

    def ended(at: datetime, number: int) -> StepRun:
        return StepRun(
            instance=mine[number % len(mine)],
            stored_definition=definition,
            node=NODES[0],
            kind=StepKind.STEP,
            visit=number,
            status=StepStatus.DONE,
            started_at=at,
            finished_at=at,
        )

    trickle = [world.now - timedelta(minutes=30 * n) for n in range(300)]
    burst = [world.now - timedelta(hours=ago, milliseconds=20 * n) for n in range(1500)]
    every = enumerate([*trickle, *burst])
    StepRun.objects.bulk_create(ended(at, number) for number, at in every)

    found = read_window(definition, "week")

    told = found.finished(found.of((NODES[0],)))
    true = len(mine)
    assert told.at_least or abs(told.number - true) <= told.error, (told, true)
    assert told.number <= true or not told.at_least


def events(world: World, type_: str, number: int) -> None:
    """Add events of a type, in no order of time."""
    for _ in range(number):
        world.received.append((type_, world._moment(9)))
    InboxEvent.objects.bulk_create(
        InboxEvent(
            source="test",
            event_id=str(uuid4()),
            body={},
            body_hash="",
            type=type_,
            verdict=Verdict.REJECTED if at.microsecond % 3 else Verdict.MOVED,
            received_at=at,
        )
        for _, at in world.received[-number:]
    )


def test_s9_5_volumes_are_exact_beside_very_many_events_of_other_types(
    made: Callable[..., World],
) -> None:
    world = made(30)
    for number, type_ in ((2, "Twice"), (150, "Often"), (40, "Now")):
        events(world, type_, number)
    events(world, "Others", 1)
    multiplied(InboxEvent.objects.get(type="Others"), event_id="'e' || n.number")
    for chosen in WINDOWS:
        rows = {row.type: row for row in event_volume(chosen).types}
        for type_ in ("Twice", "Often", "Now"):
            at = [at for one, at in world.received if one == type_]
            there = {
                name: [one for one in at if one >= world.now - length]
                for name, length in WINDOWS.items()
            }
            if not there["week"]:
                assert type_ not in rows
                continue
            received = {name: str(len(times)) for name, times in there.items()}
            assert rows[type_].received == received
            rejected = sum(bool(one.microsecond % 3) for one in there[chosen])
            verdicts = dict(rows[type_].verdicts)
            assert verdicts.get("rejected", "0") == str(rejected)
            assert sum(rows[type_].each) == len(there[chosen])
            assert sum(rows[type_].problems) == rejected
