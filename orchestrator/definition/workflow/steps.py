"""The steps of a workflow, which rows connect. A plain function is a step; `Step` adds a name or a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, Literal, NoReturn

from orchestrator.definition.declarations.guards import Guard, Stored, read_guards
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.declarations.transition_rows import Disposer
from orchestrator.definition.labels import name_of, spoken_delay, value_label
from orchestrator.definition.messages import Event
from orchestrator.exceptions import InvalidDefinition

Function = Callable[..., Any]
"""A step function. The engine binds its parameters by name."""

EventPredicate = Callable[[Any], bool]
"""A named condition on an event."""


class Runnable(ProcessDefinition):
    """The base class of workflows. `run` needs it, since this module cannot import `Workflow`."""


Retries = int | Mapping[type[Exception], int]

RETRIES = 3
TIMEOUT = 300.0


@dataclass(frozen=True)
class Policy:
    """How workers run a step.

    Args:
        retries: the number of further attempts after a failure, or such a number for each error class.
        timeout: seconds after which an attempt is stopped.
        heartbeat: seconds after which an attempt is stopped if it reports no progress.
        backoff: seconds of the delay before the second attempt, doubled for each further one; None for that of the
            settings.
        queue: the queue whose workers run the step; "" for the workflow's own.
        concurrency: how many runs of this step, of all processes, may go on at once.
        transactional: whether it runs inside the transaction that stores its result.
        idempotent: whether it may run again after its worker died in an attempt; if not, an operator decides.
        threads: the number of calls that one worker has in flight at once, each in a thread beside other work; None
            for a step without calls in flight, or an `async def`.
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
        """Return the number of all attempts at a step that fails with this error."""
        if isinstance(self.retries, int):
            return self.retries + 1
        for kind in type(error).__mro__ if error is not None else ():
            if kind in self.retries:
                return self.retries[kind] + 1
        return RETRIES + 1


@dataclass(frozen=True)
class Question:
    """How people are asked for a choice.

    Args:
        labels: the words for choices, by their values.
        help: what choices lead to, by their values.
        about: the names of fields of the input, and of results, that people see beside the question.
        needs_reason: whether an answer needs a reason.
    """

    labels: Mapping[str, str]
    help: Mapping[str, str]
    about: tuple[str, ...]
    needs_reason: bool

    @classmethod
    def of(
        cls,
        choices: Any,
        labels: Mapping[Any, Any],
        help: Mapping[Any, Any],
        about: Iterable[str],
        *,
        needs_reason: bool,
    ) -> Question:
        """Return the question about some choices; members of Django's `TextChoices` bring their own labels."""
        has_labels = hasattr(type(choices), "labels")  # of Django's enumerations
        own = dict(zip(choices, choices.labels, strict=True)) if has_labels else {}
        said, more = _by_value({**own, **labels}), _by_value(help)
        return cls(said, more, tuple(about), needs_reason)


def _by_value(texts: Mapping[Any, Any]) -> dict[str, Any]:
    return {value_label(choice): text for choice, text in texts.items()}


@dataclass(frozen=True, eq=False)
class Step:
    """A node of the graph.

    `gives` is the name of its result for later steps, `definition` the workflow that it runs. `args` are the parameters
    that are not bound by their names. `guards` and `predicates` select the events that a `wait` takes; `otherwise` is
    the disposition of the others. The deadline of a `sleep` is its end. An `optional` step that fails for good gives
    None, and its process goes on.
    """

    name: str
    kind: Literal["step", "map", "wait", "ask", "run", "sleep"]
    function: Function | None = None
    gives: str = ""
    policy: Policy = field(default_factory=Policy)
    event: type[Event] | None = None
    choices: type[Enum] | None = None
    question: Question | None = None
    definition: type[Any] | None = None
    deadline: timedelta | None = None
    late: StepLike | None = None
    args: tuple[tuple[str, Any], ...] = ()
    guards: tuple[Guard, ...] = ()
    predicates: tuple[EventPredicate, ...] = ()
    optional: bool = False
    otherwise: Disposer | None = None

    @property
    def result_name(self) -> str:
        return self.gives or self.name

    @property
    def is_call(self) -> bool:
        """Whether a worker keeps many calls of its function in flight at once."""
        return self.policy.threads is not None or iscoroutinefunction(self.function)

    def __str__(self) -> str:
        return self.name


StepLike = Function | Step
"""A step in a row: a function, or the result of `step`, `wait`, `ask`, `sleep` or `run`."""


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
    optional: bool = False,
) -> Step:
    """Give a function a name or a policy. The same function may serve several steps under different names.

    Args:
        function: the step function.
        name: the step's name; by default the function's.
        gives: the name of its result for later steps; by default the step's name.
        args: the values of parameters that are not bound by their names. A value is a constant, `stored("name")` for
            the result or the field of Input of that name, or a step for its result.
        optional: whether the process goes on, with None as the result, when the step has failed for good.

    `Policy` explains the other arguments.
    """
    pace = (retries, timeout, heartbeat, backoff)
    policy = Policy(*pace, queue, concurrency, transactional, idempotent, threads)
    named = name or name_of(function)
    bound = tuple((args or {}).items())
    return Step(named, "step", function, gives, policy, args=bound, optional=optional)


def wait(
    event: type[Event],
    name: str = "",
    /,
    *predicates: EventPredicate,
    gives: str = "",
    deadline: timedelta | None = None,
    late: StepLike | None = None,
    otherwise: Disposer | None = None,
    **guards: object,
) -> Step:
    """Wait for an event, which is the step's result. After the deadline, `late` follows or the process is escalated.

    Args:
        event: its class.
        name: the step's name; by default made from the event's name. Written by its keyword too, as `name="..."`.
        predicates: named conditions on the event.
        gives: the name of its result for later steps; by default the step's name.
        deadline: the longest wait.
        late: the next step after the deadline.
        otherwise: `park`, `ignore` or `reject`: the disposition of an event that comes during the wait, and that does
            not fit its guards or those of another open wait. None keeps it, unless the flow has `ignore(Event)`.
        guards: fields of the event and their accepted values, or `stored("name")` for an earlier result or a field of
            Input.

    Raises:
        InvalidDefinition: `name` or `gives` may also mean a guard, since the event has a field of that name.
    """
    fields = getattr(event, "__dataclass_fields__", ())
    if "name" in guards and "name" in fields:
        _refuse_wait(event, "name", "write the step's name second, without name=")
    if gives and "gives" in fields:
        _refuse_wait(event, "gives", "the result can have the step's name")
    name = name or str(guards.pop("name", ""))
    return Step(
        name or f"wait_for_{_snake(name_of(event))}",
        "wait",
        gives=gives,
        event=event,
        deadline=deadline,
        late=late,
        guards=read_guards(guards),
        predicates=predicates,
        otherwise=otherwise,
    )


def _refuse_wait(event: object, word: str, instead: str) -> NoReturn:
    reason = (
        f"{word}= may mean the step or the field of {name_of(event)}: {instead}, and write a named condition "
        "for the field"
    )
    raise InvalidDefinition("wait", "", reason)


def sleep(delay: timedelta, name: str = "") -> Step:
    """Let time pass. No worker waits, and the delay survives restarts."""
    given: Any = delay  # `step_rules` refuses any other value than a timedelta
    spoken = spoken_delay(delay) if isinstance(given, timedelta) else str(given)
    return Step(name or f"sleep_{spoken.replace(' ', '_')}", "sleep", deadline=delay)


def ask(
    name: str,
    choices: type[Enum],
    *,
    gives: str = "",
    deadline: timedelta | None = None,
    late: StepLike | None = None,
    labels: Mapping[Any, Any] = MappingProxyType({}),
    help: Mapping[Any, Any] = MappingProxyType({}),
    about: Iterable[str] = (),
    needs_reason: bool = True,
) -> Step:
    """Let an operator decide. The chosen member is the step's result. `wait` explains the deadline.

    Args:
        name: the name of the step.
        choices: a `StrEnum` or a `TextChoices` of Django.
        gives: the name of the result.
        deadline: as in `wait`.
        late: as in `wait`.
        labels: words for choices, by the choices; a choice without any is shown as its value.
        help: what choices lead to, by the choices.
        about: the names of fields of the input, and of results, that people see beside the question.
        needs_reason: whether an answer needs a reason.
    """
    given: Any = name  # code may run without a type checker
    if not isinstance(given, str):
        reason = f"it takes a name, and then its choices: the first is {given!r:.100}"
        raise InvalidDefinition("ask", "", reason)
    texts: tuple[Any, ...] = (labels, help)
    if not all(isinstance(one, Mapping) for one in texts):
        reason = "labels= and help= map choices to words, as {Answer.YES: ...}"
        raise InvalidDefinition("ask", "", reason)
    names: Any = about
    if isinstance(names, str) or not isinstance(names, Iterable):
        reason = f"about= takes several names, as ({names!r:.100},)"
        raise InvalidDefinition("ask", "", reason)
    question = Question.of(choices, labels, help, about, needs_reason=needs_reason)
    return Step(
        name,
        "ask",
        gives=gives,
        choices=choices,
        question=question,
        args=tuple((one, Stored(one)) for one in question.about),
        deadline=deadline,
        late=late,
    )


def run(
    definition: type[Runnable],
    name: str = "",
    *,
    gives: str = "",
    optional: bool = False,
) -> Step:
    """Run a sub-process. The engine binds its input by name; the result of the sub-process is the step's result.

    `step` explains `optional`.
    """
    return Step(
        name or _snake(name_of(definition)),
        "run",
        gives=gives,
        definition=definition,
        optional=optional,
    )


def as_step(value: StepLike) -> Step:
    """Return a step of a row as a `Step`."""
    if isinstance(value, Step):
        return value
    return Step(name_of(value), "step", value)


def _snake(name: str) -> str:
    return "".join(
        f"_{char.lower()}" if char.isupper() and index else char.lower()
        for index, char in enumerate(name)
    )
