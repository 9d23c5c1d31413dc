"""Functions that spoil their session, their process and their worker, among others that do nothing of the kind."""

import pytest
from django.conf import settings

from orchestrator.models import Incident, ProcessInstance, StepRun
from tests.apps.patterns import spoils
from tests.apps.patterns.desk import launch
from tests.apps.patterns.fixtures import Start, flows, said, start
from tests.apps.patterns.ledger import noted
from tests.services.database import NEEDS_SERVER
from tests.services.patience import wait_for
from tests.services.sizes import size

__all__ = ["flows", "start"]

pytestmark = [NEEDS_SERVER, pytest.mark.usefixtures("flows")]

PROCESSES = size(usual=51, full=221)


@pytest.mark.full_size("221 processes", seconds=600)
@pytest.mark.django_db(transaction=True)
def test_each_is_called_as_often_as_it_may_and_no_other_is_charged(
    start: Start,
) -> None:
    ways = [*spoils.SPOILS, "hook"]
    for number in range(PROCESSES):
        how = ways[number % len(ways)]
        launch(spoils.Hooking if how == "hook" else spoils.Spoiling, f"{how} {number}")
    workers = start(2)
    open_ones = ProcessInstance.objects.filter(finished_at=None).exclude(
        status="failed"
    )
    wait_for(lambda: not open_ones.exists(), 60, lambda: said(workers))
    fails = {f"{way} {n}" for n, way in numbered(ways) if way in spoils.FAILING}
    tried = {how for how in fails if how.split()[0] not in spoils.AT_ONCE}

    ended = dict(ProcessInstance.objects.values_list("data__how", "status"))
    assert {how for how, status in ended.items() if status != "completed"} == fails
    assert Incident.objects.open().count() == len(fails)
    calls = noted()
    assert {how for how, times in calls.items() if times > 1} == tried
    assert max(calls.values()) == 2
    charged = StepRun.objects.filter(attempt__gt=1)
    assert {run.instance.data["how"] for run in charged} == tried
    met = StepRun.objects.filter(node="look").values_list("result", flat=True)
    assert set(met) == {f"{settings.LANGUAGE_CODE} {settings.TIME_ZONE}"}


def numbered(ways: list[str]) -> list[tuple[int, str]]:
    return [(number, ways[number % len(ways)]) for number in range(PROCESSES)]
