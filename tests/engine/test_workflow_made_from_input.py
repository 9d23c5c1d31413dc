"""A graph made from an input runs the functions, by the policies, that its own input chose."""

import pytest
from django.db import transaction

from orchestrator import start_process
from orchestrator.definition import codec
from orchestrator.engine.change.workflows.starting import StartedTogether, new_workflow
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition, ProcessInstance
from tests.apps.made_from_input.processes import File, Housekeeping, done
from tests.apps.patterns.desk import go_on, insist, launch, statuses
from tests.services.operated import decided, knowing

pytestmark = pytest.mark.django_db

known = knowing(Housekeeping)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    """Begin with nothing done, and nothing remembered of earlier processes."""
    done.clear()
    definitions.forget_definitions()


@pytest.mark.parametrize("afresh", [False, True])
@pytest.mark.parametrize("order", [("copy", "delete"), ("delete", "copy")])
def test_processes_whose_graphs_are_equal_run_each_its_own_functions(
    order: tuple[str, str], *, afresh: bool
) -> None:
    processes = {kind: go_on(launch(Housekeeping, kind, kind)) for kind in order}
    assert Definition.objects.count() == 1  # as nothing of it is drawn
    for step in ("ready", "again"):
        for process in processes.values():
            if afresh:  # another worker, who has seen none of them
                definitions.forget_definitions()
            decided(process, step, "on")

    first, second = (f"{kind} {kind}" for kind in order)
    assert done == [first, second, first, second]


def test_processes_whose_graphs_are_equal_have_each_its_own_policies() -> None:
    patient = go_on(launch(Housekeeping, "patient", "fail", 3))
    hasty = go_on(launch(Housekeeping, "hasty", "fail", 0))
    decided(patient, "ready", "on")
    insist(decided(hasty, "ready", "on"))

    attempts = [f"attempt {number} at patient" for number in range(1, 5)]
    assert sorted(done) == ["attempt 1 at hasty", *attempts]
    assert statuses(hasty)["act"] == statuses(patient)["act"] == "failed"


def test_processes_with_different_graphs_start_together() -> None:
    """Each has a stored definition of its own."""
    files = File("short"), File("long", more=1)
    StartedTogether([new_workflow(Housekeeping, one) for one in files]).write()

    rows = ProcessInstance.objects.values_list("definition", flat=True)
    assert len(set(rows)) == 2


@pytest.mark.django_db(transaction=True)
def test_a_start_that_was_rolled_back_leaves_nothing_behind() -> None:
    with transaction.atomic():
        start_process(Housekeeping, File("gone", "delete"), id="one")
        transaction.set_rollback(True)
    process = launch(Housekeeping, "kept", "copy", id="one")
    for step in ("ready", "again"):
        decided(go_on(process), step, "on")

    assert done == ["copy kept"] * 2


@pytest.mark.django_db(transaction=True)
def test_an_input_is_read_once_to_find_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    process = go_on(launch(Housekeeping, "long", "copy", 0, 30))
    asked_for: list[object] = []

    def counted(value: object) -> str:
        asked_for.append(value)
        return codec.digest(value)

    definitions.forget_definitions()
    monkeypatch.setattr(definitions, "digest", counted)
    for step in ("ready", "again"):
        decided(process, step, "on")

    assert asked_for == [process.data]
