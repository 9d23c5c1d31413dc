"""Workflows whose functions raise what the engine raises, at each place where the engine calls one."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator import exceptions, send_event
from orchestrator.definition import (
    Event,
    Failure,
    ProcessManager,
    Workflow,
    case,
    catch,
    during,
    park,
    route,
    step,
    wait,
    when,
)
from orchestrator.definition.workflow.rows import then

OURS = {
    name: kind
    for name, kind in vars(exceptions).items()
    if isinstance(kind, type)
    and issubclass(kind, exceptions.ProcessionError)
    and not issubclass(kind, exceptions.Outcome)
    and name not in ("InvalidDefinition", "SettingRefused")
}
"""Every exception that is no outcome."""


def raised(name: str) -> Exception:
    kind = OURS[name]
    return kind.__new__(kind, f"out of a function: {name}")


class Unheard(Event):
    """Nobody listens to it."""

    number: int


class Begun(Event):
    number: int


class Rung(Event):
    number: int


@dataclass(frozen=True)
class Name:
    name: str


def fail(name: str) -> str:
    raise raised(name)


def tell(name: str) -> str:
    send_event("NobodyKnowsThis", {}, id=name)
    return name


def begin(name: str) -> str:
    return name


def decides(name: str) -> bool:
    raise raised(name)


def follow() -> None:
    """Is reached when nothing fails."""


def mend(error: Failure) -> str:
    return error.type


def hear(rung: Rung) -> int:
    return rung.number


class Raising(Workflow):
    Input = Name
    flow = (then(step(fail, retries=1), follow),)


class Once(Workflow):
    Input = Name
    flow = (step(fail, retries=0, idempotent=False),)


class Caught(Workflow):
    Input = Name
    flow = (
        step(fail, retries=0),
        catch(fail, error=exceptions.ProcessionError, to=mend),
    )


class Telling(Workflow):
    Input = Name
    flow = (step(tell, retries=1),)


class Deciding(Workflow):
    Input = Name
    flow = (
        step(begin, retries=1),
        route(begin, case(decides, to=follow), otherwise=step(follow, "other")),
    )


class Making(Workflow):
    """The function that makes its graph fails from the second time on."""

    Input = Name
    made = 0

    @staticmethod
    def flow(input: Name) -> list[object]:
        Making.made += 1
        if Making.made > 1:
            raise raised(input.name)
        return [then(begin, follow)]


class Listening(Workflow):
    """Waits for an event, and makes its graph anew for each; while it `fails` it makes none."""

    waits_for = (Rung,)
    fails = False

    @staticmethod
    def flow(input: object) -> list[object]:
        if Listening.fails:
            raise ConnectionError("no graph")
        return [then(wait(Rung, "bell", gives="rung", number=1), hear)]


def suits(data: object, event: object) -> bool:
    if Listening.fails:
        raise ConnectionError("no judgement")
    return False


class Judging(ProcessManager):
    """Asks a function whether an event suits it, which fails as long as `Listening` does."""

    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        number: int

    transitions = (
        during(Step.NEW, when(Begun).go_to(Step.OPEN)),
        during(Step.OPEN, when(Rung, suits).go_to(Step.CLOSED), park(Rung)),
    )


WORKFLOWS = (Raising, Once, Caught, Telling, Deciding, Making, Listening)
