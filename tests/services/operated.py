"""Operations of the operator on processes, run in the test's own process, and what becomes of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import Model

from orchestrator import Permanent
from orchestrator.definition import Workflow
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import decide, plan_repair, retry, skip
from orchestrator.exceptions import OperationRefused
from orchestrator.models import ProcessInstance
from tests.apps.compensation.journal import faults
from tests.apps.compensation.processes import Trip
from tests.apps.patterns.desk import finished, go_on, results, visits
from tests.apps.process_managers.together import raised, together
from tests.services import crews
from tests.services.asking import asked

knowing = crews.knowing
BAD = Permanent("no line")
"""What a step says that will never work."""


def operated(
    operation: Callable[..., object],
    process: ProcessInstance,
    *given: Any,
    **request: Any,
) -> ProcessInstance:
    """Have the operator do something to a process, and run whatever is ready then."""
    operation(process.pk, *given, request=asked(**request))
    return go_on(process)


def decided(
    process: ProcessInstance, node: str = "", choice: str = "yes"
) -> ProcessInstance:
    """Answer the question that is open, or that of a step; run whatever is ready then."""
    questions = process.step_runs.filter(kind="ask", finished_at=None)
    question = questions.get(node=node) if node else questions.get()
    return operated(decide, process, question.pk, choice)


def skipped(process: ProcessInstance, node: str, result: Any) -> ProcessInstance:
    """Skip the last visit of a step with a result, and run whatever is ready then."""
    return operated(skip, process, visits(process, node)[-1].pk, result)


def outcome(process: ProcessInstance, step: str) -> tuple[str, Any]:
    """Run whatever is ready; return the status of a process, and the result of one of its steps."""
    return go_on(process).status, results(process).get(step)


def troubled(
    definition: type[Workflow], *given: Any, **wrong: Exception
) -> ProcessInstance:
    """Run a process as far as it goes when from now on these steps raise these errors."""
    faults.update(wrong)
    return finished(definition, *given)


def failed(
    *steps: str, of: type[Workflow] = Trip, given: tuple[Any, ...] = ()
) -> ProcessInstance:
    """Run a process until these steps have failed for good; another attempt would work."""
    process = troubled(of, *given, **dict.fromkeys(steps, BAD))
    faults.clear()
    assert process.status == "failed"
    return process


def mended(process: ProcessInstance) -> ProcessInstance:
    """Have a process retried when nothing is wrong any more, and run whatever is ready then."""
    faults.clear()
    return operated(retry, process)


def mistakes(process: ProcessInstance, *edits: Any) -> dict[int, str]:
    """Return what is wrong with edits of a repair, by their places."""
    plan = plan_repair(process, list(edits))
    return {place: str(mistake) for place, mistake in plan.mistakes.items()}


def one_piece() -> None:
    """Run one piece of work, and nothing that follows from it."""
    drain(stop=partial(next, iter([False]), True))


def press(
    operation: Callable[..., object], row: Model, *given: Any, **request: Any
) -> Callable[[], object]:
    """Return what has the operator do something to a process when it is called."""
    return partial(operation, row.pk, *given, request=asked(**request))


def at_once(*calls: Callable[[], object]) -> list[Exception]:
    """Do all of that at the same moment; return what was refused: nothing else may go wrong."""
    errors = raised(together(*calls))
    assert all(isinstance(error, OperationRefused) for error in errors), errors
    return errors
