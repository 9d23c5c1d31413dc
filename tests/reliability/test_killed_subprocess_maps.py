"""Fleets of 10 ships sail while workers are killed: each ship has one passage, and all arrive."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db.models import Count

from orchestrator import start_process
from orchestrator.models import Incident, ProcessInstance, Status, StepKind, StepRun
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage
from tests.reliability.storm import Storm, all_have
from tests.services.crews import knowing
from tests.services.sizes import size
from tests.services.workers import Workers

FLEETS = size(2, full=12)
SHIPS = 10


fleets = knowing(Fleet, Passage)


@pytest.mark.full_size("12 fleets of 10 ships", seconds=240)
def test_each_element_has_one_sub_process_though_workers_are_killed(
    hands: Workers, administrator: User
) -> None:
    for _ in range(FLEETS):
        start_process(Fleet, Order(SHIPS))
    wanted = (Status.COMPLETED, FLEETS)
    all_arrived = partial(all_have, administrator, *wanted, name="fleet")
    with Storm(hands, 0.4, steps=8, seed=7).raging(kills=2) as until:
        until(all_arrived, 75)

    passages = ProcessInstance.objects.filter(name="passage", status=Status.COMPLETED)
    assert ProcessInstance.objects.filter(name="passage").count() == FLEETS * SHIPS
    each = passages.values("parent", "data__number").annotate(n=Count("pk"))
    assert [row["n"] for row in each] == [1] * FLEETS * SHIPS
    items = StepRun.objects.filter(kind=StepKind.ITEM, child__in=passages)
    assert items.values("child").distinct().count() == FLEETS * SHIPS
    for report in StepRun.objects.filter(node="report"):
        assert report.result == [number * 10 + 1 for number in range(SHIPS)]
    assert not Incident.objects.open().exists()
