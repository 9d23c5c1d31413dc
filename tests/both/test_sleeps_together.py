"""Sleeps that end at one moment share a commit; each that cannot ends by itself."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from orchestrator import registry, start_process
from orchestrator.definition import Workflow, sleep, step, then
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import escalate
from orchestrator.engine.sql.tables import instances
from orchestrator.models import ProcessInstance, Status, StepRun, StepStatus
from orchestrator.testing import replaced
from orchestrator.testing.clock import move_times_back
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.noting import noting
from tests.services.supervised import Supervised, unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db(transaction=True)

NIGHT = timedelta(hours=8)
calls: Counter[str] = Counter()


def wake_up() -> None:
    calls["wake_up"] += 1


class Nap(Workflow):
    """Sleeps, and then takes a step."""

    flow = (then(sleep(NIGHT, "nap"), step(wake_up)),)


class Gone(Workflow):
    """The running code will not know it."""

    flow = (then(sleep(NIGHT, "nap"), step(wake_up)),)


def be_busy() -> None:
    """Do nothing."""


class Busy(Workflow):
    """One step that takes its time."""

    flow = (step(be_busy),)


known = knowing(Nap, Gone, Busy)


def naps_due(number: int) -> None:
    """Have so many sleeps due."""
    for _ in range(number):
        start_process(Nap)
    drain()
    move_times_back(NIGHT)


def statuses() -> Counter[str]:
    return Counter(ProcessInstance.objects.values_list("status", flat=True))


def test_sleeps_that_are_due_together_are_ended_by_few_statements() -> None:
    calls.clear()
    naps_due(64)
    with noting() as found:
        drain(alone=True)

    assert statuses() == {Status.COMPLETED: 64}
    assert calls == {"wake_up": 64}
    # SQLite takes a statement for each write; each sleep by itself asks the database twelve times.
    assert len(found) < (24 if connection.vendor == "postgresql" else 13 * 64)


def test_a_process_that_has_changed_meanwhile_ends_its_sleep_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is written without a lock: the fence on its revision leaves it out of the commit."""
    naps_due(4)
    changed = ProcessInstance.objects.order_by("pk").first()
    assert changed
    usual = instances.read_many

    def read(pks: Any) -> Any:
        found = usual(pks)
        monkeypatch.setattr(instances, "read_many", usual)
        escalate(changed.pk, request=asked())
        return found

    monkeypatch.setattr(instances, "read_many", read)
    drain(alone=True)

    assert statuses() == {Status.COMPLETED: 4}
    ended = StepRun.objects.filter(node="nap", status="done")
    assert Counter(ended.values_list("left", flat=True)) == {2: 3, 3: 1}


def test_a_sleep_whose_definition_is_gone_fails_and_leaves_the_others_alone() -> None:
    for kind in (Gone, Nap, Nap, Nap):
        start_process(kind)
    drain()
    move_times_back(NIGHT)
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(registry.definitions, (Gone.name, Gone.version))
        drain(alone=True)
    assert statuses() == {Status.COMPLETED: 3, Status.WAITING: 1}
    sleeping = StepRun.objects.get(status=StepStatus.WAITING)
    assert "no definition gone version 1" in sleeping.error


def test_others_take_over_what_follows_while_the_worker_is_busy(
    unhurried: None,
) -> None:
    """The supervisor sees the visits that the worker goes on with as soon as it calls a function."""
    worker, seen = Supervised(), list[str]()
    naps_due(3)
    start_process(Busy)
    after = StepRun.objects.filter(node="wake_up")

    def look() -> None:
        worker.look()
        seen.extend(after.values_list("owner", flat=True))

    with replaced(be_busy, look):
        worker.drain("default")

    assert seen == [""] * 3
    assert statuses() == {Status.COMPLETED: 4}
