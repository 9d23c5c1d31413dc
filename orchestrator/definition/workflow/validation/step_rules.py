"""Rules for single steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from inspect import iscoroutinefunction
from typing import Any

from orchestrator.definition.annotations import is_class, takes_arguments
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.declarations.transition_rows import DEFAULTS
from orchestrator.definition.labels import name_of, value_label
from orchestrator.definition.messages import Event
from orchestrator.definition.refusals import (
    DELAY,
    LONGEST,
    is_delay,
    why_generator,
    why_not_plain,
    why_unnamed,
)
from orchestrator.definition.workflow.steps import Runnable, Step
from orchestrator.text import PLAIN_NAME, is_plain_name

LONGEST_NAME = 100

SECONDS = "seconds, more than 0 and at most 1,000 years"


def why_no_step(value: object) -> str:
    """Return why a value cannot be a step of a row, or ""."""
    if isinstance(value, Step):
        return ""
    if is_class(value, Event):
        return f"write wait({name_of(value)}) to wait for an event"
    if has_flow(value):
        return f"write run({name_of(value)}) to run another workflow"
    if _is_process_manager(value):
        return _not_run(value)
    return why_unnamed(value, "a step")


def step_mistakes(step: Step) -> Iterator[str]:
    """Yield the mistakes in a step."""
    yield from _names(step)
    if step.function is not None:
        yield from _function(step.function)
    yield from _policy(step.policy)
    yield from _call(step)
    if step.kind == "wait" and not is_class(step.event, Event):
        yield f"{step.event!r} is not an Event class"
    if step.kind == "ask":
        yield from _question(step)
    if step.kind == "run" and not has_flow(step.definition):
        yield _not_run(step.definition)
    for predicate in step.predicates:
        yield from condition_mistakes(predicate)
    yield from _otherwise(step)
    yield from _deadline(step)
    optional: Any = step.optional
    if not isinstance(optional, bool):
        yield f"optional={optional!r} must be True or False"


def _question(step: Step) -> Iterator[str]:
    choices, question = step.choices, step.question
    if not (is_class(choices, Enum) and is_class(choices, str) and list(choices or ())):
        yield "choices is a StrEnum or a TextChoices with members"
    elif question is not None and choices is not None:
        known = [value_label(choice) for choice in choices]
        yield from _words("labels", question.labels, known)
        yield from _words("help", question.help, known)
        yield from _about(question.about)
        reason: Any = question.needs_reason
        if not isinstance(reason, bool):
            yield f"needs_reason={reason!r} must be True or False"


def _words(word: str, texts: Mapping[str, Any], known: Sequence[str]) -> Iterator[str]:
    for choice in texts.keys() - set(known):
        yield f"{word}= has {choice!r}, which is none of {', '.join(known)}"
    for choice, text in texts.items():
        if not str(text or "").strip():
            yield f"{word}= has no words for {choice}"


def _about(names: Sequence[Any]) -> Iterator[str]:
    for one in names:
        if not isinstance(one, str):
            yield f"about= has {one!r}, which is no name"
    if len(set(map(repr, names))) < len(names):
        yield "about= has a name twice"


def _names(step: Step) -> Iterator[str]:
    names: tuple[Any, ...] = (step.name, step.result_name)
    for name in names:
        if not isinstance(name, str) or not is_plain_name(name):
            yield f"the name {name!r} must be text that is {PLAIN_NAME}"
        elif len(name) > LONGEST_NAME:
            yield f"the name {name[:20]}… has {len(name)} characters, at most {LONGEST_NAME} are stored"


def _function(function: Callable[..., Any]) -> Iterator[str]:
    if getattr(function, "__name__", "") == "<lambda>":
        yield why_unnamed(function, "a step")
    elif why_generator(function):
        yield f"{name_of(function)} yields: a step returns one result"


def _call(step: Step) -> Iterator[str]:
    """Yield the mistakes in a step with calls in flight."""
    policy, threads = step.policy, step.policy.threads
    if threads is not None and not is_int_from(threads, 1):
        yield f"threads={threads!r} must be a whole number from 1"
    elif iscoroutinefunction(step.function) and threads is not None:
        yield f"{name_of(step.function)} is asynchronous and needs no threads: leave threads={threads} out"
    elif step.is_call and policy.transactional:
        what = "threads" if threads is not None else "asynchronous"
        yield f"it is {what} and transactional: nothing may wait inside the commit, so write a plain function without"


def _policy(policy: Any) -> Iterator[str]:
    yield from _retries(policy)
    for name in ("timeout", "heartbeat", "backoff"):
        value = getattr(policy, name)
        if value is not None and not _seconds(value):
            yield f"{name}={value!r} must be {SECONDS}"
            return
    if policy.timeout is None:
        yield f"timeout=None must be {SECONDS}"
    elif policy.heartbeat is not None and policy.heartbeat >= policy.timeout:
        yield f"heartbeat={policy.heartbeat:g} must be less than timeout={policy.timeout:g}"
    if policy.concurrency is not None and not is_int_from(policy.concurrency, 1):
        yield f"concurrency={policy.concurrency!r} must be a whole number from 1"
    if not isinstance(policy.queue, str):
        yield f"queue={policy.queue!r} must be the name of a queue"


def _retries(policy: Any) -> Iterator[str]:
    retries = policy.retries
    if not isinstance(retries, Mapping):
        retries = {Exception: retries}
    for kind, count in retries.items():
        if not is_class(kind, Exception):
            yield f"retries by error: {name_of(kind)} is not an Exception"
        if not is_int_from(count, 0):
            yield f"retries={count!r} must be a whole number from 0"


def _not_run(definition: object) -> str:
    """Return why `run` refuses a definition."""
    if not _is_process_manager(definition):
        return f"{definition!r} is not a Workflow with a flow"
    name = name_of(definition)
    return (
        f"run takes workflows, and {name} is a process manager: start it in a step with start_process({name}, ...), "
        "then wait(...) for an event that one of its command handlers sends"
    )


def _otherwise(step: Step) -> Iterator[str]:
    if step.otherwise is None:
        return
    if step.otherwise not in tuple(DEFAULTS):  # it may not be hashable
        said = name_of(step.otherwise)
        yield f"otherwise={said}: it must be park, ignore or reject"
    elif not step.guards and not step.predicates:
        yield "otherwise=... needs a guard: without one, the step takes every event"


def _deadline(step: Step) -> Iterator[str]:
    deadline: Any = step.deadline
    if step.kind == "sleep":
        if not is_delay(deadline):
            yield f"it sleeps for {deadline!r}, which must be a {DELAY}"
    elif deadline is None:
        if step.late is not None:
            yield "late=... needs a deadline"
    elif not is_delay(deadline):
        yield f"the deadline {deadline!r} must be a {DELAY}"


def condition_mistakes(predicate: Any) -> Iterator[str]:
    """Yield the mistakes in a condition on a result or an event."""
    if reason := why_not_plain(predicate, "a condition"):
        yield reason
    elif not takes_arguments(predicate, 1):
        yield f"the condition {predicate.__name__} must take one argument, the result"


def _seconds(value: object) -> bool:
    return type(value) in (int, float) and 0 < value <= LONGEST.total_seconds()  # type: ignore[operator]


def is_int_from(value: object, least: int) -> bool:
    """Return whether a value is an int, not a bool, and at least `least`."""
    return type(value) is int and value >= least


def _is_process_manager(value: object) -> bool:
    return is_class(value, ProcessDefinition) and not is_class(value, Runnable)


def has_flow(value: object) -> bool:
    """Return whether a value is a workflow with a flow."""
    return is_class(value, Runnable) and hasattr(value, "flow")
