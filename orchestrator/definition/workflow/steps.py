"""The steps of a workflow, which rows connect. A plain function is a step; these objects add a name or a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

from orchestrator.definition.guards import Guard, guards_of
from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.messages import Event
from orchestrator.definition.process_definition import ProcessDefinition
from orchestrator.definition.words import name_of, spoken_delay

Function = Callable[..., Any]
"""A step function: its parameters are bound by name."""

EventPredicate = Callable[[Any], bool]
"""A named condition on an event."""


class Runnable(ProcessDefinition):
    """The base of workflows for `run`. Workflows consist of steps, so this module cannot import them."""


Retries = int | Mapping[type[Exception], int]

RETRIES = 3
TIMEOUT = 300.0


@dataclass(frozen=True)
class Policy:
    """How a step is run.

    Args:
        retries: how often it is tried again after a failure; for some error types another number than for the rest.
        timeout: seconds one attempt may take before it is stopped.
        heartbeat: seconds within which a running attempt must report progress, or be stopped.
        backoff: seconds of the first delay before another attempt; doubles each time. None: as the settings say.
        queue: whose workers run it; "" for the workflow's own.
        concurrency: how many runs of this step, of all processes, may go on at once.
        transactional: run inside the transaction that stores its result.
        idempotent: whether it may run again when a worker died in the middle of it; if not, people are asked.
        threads: how many of its runs one worker has in flight at once, each in a thread of its own, beside other work;
            None for one that is not run so. An `async def` needs none.
    """

    retries: Retries = RETRIES
    timeout: float = TIMEOUT
    heartbeat: float | None = None
    backoff: float | None = None
    queue: str = ""
    concurrency: int | None = None
    transactional: bool = False
    idempotent: bool = True
    threads: int | None = None

    def attempts(self, error: BaseException | None = None) -> int:
        """How often the step is tried in all when it fails with this error."""
        if isinstance(self.retries, int):
            return self.retries + 1
        for kind in type(error).__mro__ if error is not None else ():
            if kind in self.retries:
                return self.retries[kind] + 1
        return RETRIES + 1


@dataclass(frozen=True, eq=False)
class Step:
    """A node of the graph.

    `gives` is the name under which later steps get its result, `definition` the workflow that it runs; `args` are the
    parameters that are not bound by their names; `guards` and `predicates` say which events a `wait` takes. The
    deadline of a `sleep` is its end.
    """

    name: str
    kind: Literal["step", "map", "wait", "ask", "run", "sleep"]
    function: Function | None = None
    gives: str = ""
    policy: Policy = field(default_factory=Policy)
    event: type[Event] | None = None
    choices: type[StrEnum] | None = None
    definition: type[Any] | None = None
    deadline: timedelta | None = None
    late: StepLike | None = None
    args: tuple[tuple[str, Any], ...] = ()
    guards: tuple[Guard, ...] = ()
    predicates: tuple[EventPredicate, ...] = ()

    @property
    def result_name(self) -> str:
        return self.gives or self.name

    @property
    def is_call(self) -> bool:
        """Whether a worker keeps many calls of its function in flight at once."""
        return self.policy.threads is not None or is_asynchronous(self.function)

    def __str__(self) -> str:
        return self.name


StepLike = Function | Step
"""What a row may name: a function, or what `step`, `wait`, `ask`, `sleep` and `run` return."""


def step(
    function: Function,
    name: str = "",
    *,
    gives: str = "",
    retries: Retries = RETRIES,
    timeout: float = TIMEOUT,
    heartbeat: float | None = None,
    backoff: float | None = None,
    queue: str = "",
    concurrency: int | None = None,
    transactional: bool = False,
    idempotent: bool = True,
    threads: int | None = None,
    args: Mapping[str, Any] | None = None,
) -> Step:
    """A function with a name or a policy of its own; the same function may serve several steps under different names.

    Args:
        function: what runs.
        name: the step's name; the function's own when empty.
        gives: the name of its result for later steps; the step's name when empty.
        args: what parameters get that are not to be bound by their own names: a constant; `stored("name")`, the result
            or field of Input of another name; or a step, whose result it is.

    The rest is explained with `Policy`.
    """
    policy = Policy(
        retries,
        timeout,
        heartbeat,
        backoff,
        queue,
        concurrency,
        transactional,
        idempotent,
        threads,
    )
    named = name or name_of(function)
    bound = tuple((args or {}).items())
    return Step(named, "step", function, gives, policy, args=bound)


def wait(
    event: type[Event],
    name: str = "",
    *predicates: EventPredicate,
    gives: str = "",
    deadline: timedelta | None = None,
    late: StepLike | None = None,
    **guards: object,
) -> Step:
    """A step that waits for an event; its result is the event. After the deadline it goes to `late`, or escalates.

    Args:
        event: its class.
        name: the step's name; made from the event's when empty.
        predicates: named conditions on the event.
        gives: the name of its result for later steps; the step's name when empty.
        deadline: how long it waits.
        late: where it goes then.
        guards: fields of the event and the value or values they must have, or `stored("name")`: that of an earlier
            result, or field of Input. An event that does not fit is kept for a step that takes it.
    """
    return Step(
        name or f"wait_for_{_snake(name_of(event))}",
        "wait",
        gives=gives,
        event=event,
        deadline=deadline,
        late=late,
        guards=guards_of(guards),
        predicates=predicates,
    )


def sleep(delay: timedelta, name: str = "") -> Step:
    """A step in which time passes and nothing else: no worker is held, and restarts do not matter."""
    given: Any = delay  # it is refused later if it is no timedelta
    spoken = spoken_delay(delay) if isinstance(given, timedelta) else str(given)
    return Step(name or f"sleep_{spoken.replace(' ', '_')}", "sleep", deadline=delay)


def ask(
    name: str,
    choices: type[StrEnum],
    *,
    gives: str = "",
    deadline: timedelta | None = None,
    late: StepLike | None = None,
) -> Step:
    """A step in which an operator decides; its result is the chosen member. After the deadline as with `wait`."""
    return Step(name, "ask", gives=gives, choices=choices, deadline=deadline, late=late)


def run(definition: type[Runnable], name: str = "", *, gives: str = "") -> Step:
    """A step that is a process of its own; its input is bound by name, its result is that process's result."""
    return Step(
        name or _snake(name_of(definition)),
        "run",
        gives=gives,
        definition=definition,
    )


def step_of(value: StepLike) -> Step:
    """The step that a row names."""
    if isinstance(value, Step):
        return value
    return Step(name_of(value), "step", value)


def _snake(name: str) -> str:
    return "".join(
        f"_{char.lower()}" if char.isupper() and index else char.lower()
        for index, char in enumerate(name)
    )
