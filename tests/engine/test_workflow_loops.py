"""Maps inside loops: each round has elements of its own, and those of the round before count no more."""

from collections.abc import Callable

import pytest

from orchestrator.definition import Workflow
from orchestrator.engine import operations
from orchestrator.models import ProcessInstance, Status, StepKind
from tests.apps.patterns import rounds
from tests.apps.patterns.desk import finished, go_on, launch, results
from tests.apps.patterns.fixtures import flows, press
from tests.services.cases import cases
from tests.services.operated import operated

__all__ = ["flows", "press"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


def here(process: ProcessInstance) -> ProcessInstance:
    """Run everything in one place, which keeps what it has read."""
    return go_on(process)


def in_two_places(process: ProcessInstance) -> ProcessInstance:
    """Run the elements elsewhere, so that whoever gathers them reads them anew."""
    for _ in range(4):
        go_on(go_on(process), "press")
    return go_on(process)


@cases(
    "definition, run",
    (rounds.Shrinking, here),
    (rounds.ShrinkingElsewhere, in_two_places),
)
def test_a_map_with_fewer_elements_in_a_later_round_gives_only_those(
    definition: type[Workflow],
    run: Callable[[ProcessInstance], ProcessInstance],
    press: str,
) -> None:
    process = run(launch(definition, [1, 2, 3]))

    assert process.status == Status.COMPLETED
    heads = process.step_runs.filter(kind=StepKind.MAP).order_by("visit")
    assert [head.expected for head in heads] == [3, 1]
    assert results(process)["keep"] == [[113], [13]]


def test_a_map_without_elements_in_a_later_round_gives_none() -> None:
    process = finished(rounds.Vanishing, [1, 2, 3])

    assert process.status == Status.COMPLETED
    assert results(process)["keep"] == [[], []]


def test_of_a_map_in_a_loop_elements_of_the_last_round_are_redone(press: str) -> None:
    process = finished(rounds.Lingering, [1, 2, 3])
    operated(operations.redo, process, "raised")

    again = process.step_runs.filter(node="raised", redo=True)
    assert [(run.visit, run.item, run.result) for run in again] == [(2, 0, 113)]
    assert results(go_on(process, "press"))["keep"] == [[113], [13]]
