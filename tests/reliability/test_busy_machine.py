"""Wide and dense workflows on a machine whose processors others keep busy: late, but nobody's attempt is charged."""

import pytest

from orchestrator import start_process
from orchestrator.models import Incident, ProcessInstance, Status, StepRun
from tests.apps.wide_graphs.processes import WORKFLOWS, Breadth, Broad, Dense, Mesh
from tests.services.crews import knowing
from tests.services.load import busy
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.workers import Workers

known = knowing(*WORKFLOWS)


@pytest.mark.crowds
@pytest.mark.timeout(1200)
@pytest.mark.full_size("1,000 branches and 17,000 edges beside 20", seconds=900)
def test_a_busy_machine_charges_nobody(hands: Workers) -> None:
    hands.start()
    with busy(size(2, full=20)):
        start_process(Broad, Breadth(size(40, full=1000)))
        start_process(Dense, Mesh(size(6, full=43), size(3, full=10)))
        wait_for(
            lambda: not ProcessInstance.objects.live().exists(), size(30, full=200)
        )

    statuses = set(ProcessInstance.objects.values_list("status", flat=True))
    assert statuses == {Status.COMPLETED}
    assert not Incident.objects.exists()
    assert not StepRun.objects.filter(attempt__gt=1).exists()
    assert not StepRun.objects.exclude(error="").exists()
