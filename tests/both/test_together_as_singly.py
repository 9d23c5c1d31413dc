"""Work of every kind that is written in groups leaves the rows that it leaves when each is written by itself."""

import random
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Q

from orchestrator import Permanent, send_event, start_process
from orchestrator.definition import (
    Event,
    Workflow,
    case,
    fork,
    join,
    route,
    run,
    sleep,
    then,
)
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.operations import pause
from orchestrator.engine.operations.bulk import slices
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.group_commit import GroupCommit
from orchestrator.engine.work.worker_slice import HeldWork
from orchestrator.models import BulkOperation, ProcessInstance
from orchestrator.testing import failing
from orchestrator.testing import run as run_ready
from orchestrator.testing.clock import move_times_back
from tests.apps.many_together.processes import (
    Cards,
    CardTurned,
    PointMade,
    RoundOver,
    TableCleared,
    TableLaid,
)
from tests.apps.process_managers.failures import Failures, fail
from tests.apps.wide_graphs import processes as graphs
from tests.conftest import InGroups
from tests.services.asking import asked
from tests.services.bulk import begun, frozen, verdicts, worked_on
from tests.services.crews import knowing
from tests.services.left import Rows, left_by
from tests.services.sizes import size
from tests.services.supervised import hold_long

__all__ = ["fail"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

NIGHT = timedelta(hours=8)
AWKWARD = ("plain", "\U0001f600 ' \" \\ %s {} $1", "", "null", "名前")
NAMES = ("a", "b", "c", "d", "choose_e", "choose_f")


@dataclass(frozen=True)
class Said:
    text: str
    numbers: tuple[int, ...] = ()
    share: float | None = None


def say(text: str, numbers: tuple[int, ...], share: float | None) -> Said:
    return Said(text, numbers, share)


def repeat(say: Said) -> Said:
    return say


class Echo(Workflow):
    """Says the same twice."""

    Input = Said
    flow = (then(say, repeat),)


def look() -> int:
    return 2


def act() -> None:
    """Do nothing."""


def is_none(result: None) -> bool:
    return result is None


nap, again = sleep(NIGHT, "nap"), sleep(NIGHT, "again")


class Naps(Workflow):
    """Sleeps twice, and then takes a step."""

    flow = (then(nap, again, look),)


class LastNap(Workflow):
    """Ends with its sleep."""

    flow = (then(look, nap),)


class NapsBeside(Workflow):
    """Sleeps twice at the same time."""

    flow = (fork(look, into=[nap, again]), join(nap, again, into=act))


class NapChooses(Workflow):
    """Goes on after its sleep by a condition."""

    flow = (route(nap, case(is_none, to=act), otherwise=look),)


class Parent(Workflow):
    """Has a process that sleeps."""

    flow = (then(run(LastNap, "child"), act),)


SLEEPERS = [Naps, LastNap, NapsBeside, NapChooses, Parent]

known = knowing(Cards, Echo, *SLEEPERS, *graphs.WORKFLOWS)


@pytest.mark.parametrize("seed", range(size(3, full=60)))
def test_a_random_group_leaves_the_rows_that_its_parts_leave_one_by_one(
    seed: int, fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    operation = something_due(chance, fail, operator)
    written: list[int] = []
    commit = group_commit.commit_changes

    def note(changes: Any) -> GroupCommit:
        written.append(len(changes))
        return commit(changes)

    monkeypatch.setattr(group_commit, "commit_changes", note)

    def work() -> None:
        worked_on(operation)
        assert verdicts(operation) == {"done": operation.total}

    together(monkeypatch)
    in_groups = without_merging(left_by(work))
    assert max(written) > 1
    written.clear()
    singly(monkeypatch)
    one_by_one = without_merging(left_by(work))

    assert set(written) <= {1}
    for table, rows in one_by_one.items():
        assert in_groups[table] == rows, table


def something_due(chance: random.Random, fail: Failures, actor: User) -> BulkOperation:
    """Have events, steps and commands due, and failed processes of two kinds to be retried; nothing of it has run."""
    for kind in chance.choices(SLEEPERS, k=8) + SLEEPERS:
        start_process(kind)
    run_ready()
    resting = ProcessInstance.objects.filter(name=Naps.name).first()
    assert resting
    pause(resting.pk, request=asked())
    move_times_back(NIGHT)
    tables = [f"table {number} {chance.choice(AWKWARD)}" for number in range(5)]
    laid = [start_process(Cards, TableLaid(table)).process_id for table in tables]
    with failing(graphs.act, Permanent("no line")):
        for _ in range(chance.randint(1, 4)):
            beside(chance)
        fail(chance.randint(2, 5))
    failed = ProcessInstance.objects.filter(status="failed").count()
    operation = frozen(begun(actor, {"status": "failed"}, failed))
    for turn in zip_longest(*(turns(chance) for _ in laid)):
        for pk, event in zip(laid, turn, strict=True):
            if event is not None:  # this table has fewer turns
                send_event(event(), id=f"{chance.random()}", process_id=pk)
    for _ in range(chance.randint(2, 8)):
        beside(chance)
        start_process(chance.choice([graphs.Short, graphs.Narrow]))
        numbers = tuple(chance.choices([0, -1, 10**30, 2**63], k=3))
        share = chance.choice([0.1, 1e-7, None])
        start_process(Echo, Said(f"{chance.choice(AWKWARD)}\u2028\n", numbers, share))
    assert verdicts(operation) == {"waiting": failed}
    return operation


def turns(chance: random.Random) -> list[type[Event]]:
    """Return events of one table; the last may be parked, as what is parked holds back nothing that is claimed."""
    first = chance.choice([CardTurned, PointMade, RoundOver])  # there is one point
    more = [chance.choice([CardTurned, RoundOver]) for _ in range(chance.randint(0, 3))]
    sent = [first, *(event for pair in more for event in (CardTurned, pair))]
    return [*sent, *chance.choice([[], [TableCleared]])]


def beside(chance: random.Random) -> None:
    names = chance.sample(NAMES, chance.randint(2, len(NAMES)))
    start_process(graphs.Beside, graphs.Names(tuple(names)))


def together(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_long(monkeypatch)
    monkeypatch.setattr(draining, "FEW", 64)
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 30)
    monkeypatch.setattr(draining, "UNSEEN", InGroups())


def singly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "FEW", 1)
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 0)
    monkeypatch.setattr(draining, "UNSEEN", HeldWork())
    monkeypatch.setattr(draining.ReadyWork, "_next_size", lambda *given: 1)
    monkeypatch.setattr(slices, "MOST", 1)


def without_merging(rows: Rows) -> Rows:
    """Leave out what differs by nature.

    At which revisions one process has left its steps: those that go together leave it at the same.
    """
    wide = ProcessInstance.objects.filter(Q(name="wide-beside"))
    ids = set(wide.values_list("pk", flat=True))
    merged = {"ProcessInstance": "id", "StepRun": "instance_id"}
    for table, key in merged.items():
        for row in rows[table]:
            if row[key] in ids:
                for name in {"revision", "entered", "left"} & row.keys():
                    row[name] = row[name] is not None
    for row in rows["BulkOperation"]:
        # In how many slices it was carried out, which end by time.
        del row["attempt"], row["revision"]
    points = rows["Checkpoint"]
    rows["Checkpoint"] = [row for row in points if row["instance_id"] not in ids]
    return {table: sorted(found, key=repr) for table, found in rows.items()}
