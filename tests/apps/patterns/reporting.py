"""Steps that say something while they run."""

from orchestrator.definition import StepContext, Workflow, step
from orchestrator.models import StepRun
from tests.apps.patterns.failing import Transient
from tests.apps.patterns.patterns import Number


def count(number: int, context: StepContext) -> int:
    for done in range(1, number + 1):
        context.progress(done, number, f"page {done}")
    return number


class Counting(Workflow):
    """A step that says how far it is."""

    Input = Number
    flow = (step(count),)


def miscount(context: StepContext) -> None:
    context.progress(float("nan"))


class Miscounting(Workflow):
    """A step that says something that is no number."""

    flow = (step(miscount, retries=0),)


def ask_twice(context: StepContext) -> list[bool]:
    """Asks whether the step is still its own before and after somebody has taken it over."""
    before = context.still_mine()
    runs = StepRun.objects.filter(instance=context.process_id)
    owner = runs.get().owner
    runs.update(owner="somebody else")
    after = context.still_mine()
    runs.update(owner=owner)
    return [before, after]


class Asking(Workflow):
    """A step that asks whether it is still its own."""

    flow = (step(ask_twice),)


def keep(context: StepContext) -> list[str]:
    if context.saved is None:
        context.save(str(context.idempotency_key))
        raise Transient
    return [context.saved, str(context.idempotency_key)]


class Keeping(Workflow):
    """A step that keeps its key for the next attempt."""

    flow = (step(keep, backoff=0.01),)


def save_much(context: StepContext) -> None:
    context.save("x" * 300_000)


class Saving(Workflow):
    """A step that saves too much."""

    flow = (step(save_much),)


def repeat_the_end(context: StepContext) -> None:
    for _ in range(500):
        context.progress(1, 1)


class Repeating(Workflow):
    """A step that says again and again that it is at its end."""

    flow = (step(repeat_the_end),)
