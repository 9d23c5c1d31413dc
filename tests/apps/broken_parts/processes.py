"""Processes three deep and in maps, and what they have written for a part that fails."""

from typing import Any

from orchestrator.definition import Workflow, catch, each, run, step, then
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.definition.workflow.steps import Function, Step
from orchestrator.exceptions import SubprocessFailed
from tests.apps.broken_parts import steps
from tests.apps.broken_parts.steps import Job


def patient(function: Function) -> Step:
    """Return a step that outlives more kills than a storm has for one step, and is not tried again when it breaks."""
    retries: dict[type[Exception], int] = {ConnectionError: 0, Exception: 30}
    return step(function, retries=retries)


explain = patient(steps.explain)


class Part(Workflow):
    """Every other one breaks."""

    Input = Job
    flow = (then(patient(steps.prepare), patient(steps.finish)),)


part = run(Part, "part")


class Middle(Workflow):
    """Has one part."""

    Input = Job
    flow = (part,)


middle = run(Middle, "middle")
piece = run(Middle, "piece")


class Strict(Workflow):
    """Nothing is written for a failure: it waits for a person, three deep."""

    Input = Job
    flow = (middle,)


class Caught(Workflow):
    """Another step explains what has failed, three deep."""

    Input = Job
    flow = (middle, catch(middle, error=SubprocessFailed, to=explain))


def pieces(**limits: Any) -> FlowRow:
    """A part for each number."""
    numbers, total = patient(steps.numbers), patient(steps.total)
    return each(numbers, over="", do=piece, into=total, item="number", **limits)


class StrictMap(Workflow):
    """A map whose elements must all be done."""

    Input = Job
    flow = (pieces(),)


class Tolerant(Workflow):
    """A map that puts up with half of its elements, three at once."""

    Input = Job
    flow = (pieces(window=3, tolerate=0.5),)


class CaughtMap(Workflow):
    """A map that is given up when one of its elements fails."""

    Input = Job
    flow = (pieces(), catch(piece, error=SubprocessFailed, to=explain))


TAKEN = (Caught, Tolerant, CaughtMap)
"""Those that have a rule for the failure."""
STANDING = (Strict, StrictMap)
"""Those that wait for a Retry."""
WORKFLOWS = (Part, Middle, *TAKEN, *STANDING)
