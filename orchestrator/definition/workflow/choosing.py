"""Which ways a result takes: the choices of one row, and the end of a loop."""

from __future__ import annotations

from typing import Any

from orchestrator.definition.workflow.plan import Choice, Link, Loop
from orchestrator.exceptions import NoCase


def chosen(choice: Choice, result: Any, step: str) -> list[Link]:
    """The links of one row that a result takes.

    Args:
        choice: what the row makes of results.
        result: of the step.
        step: its name, for the message.

    Raises:
        NoCase: the row must take one, and none fits.
        Exception: whatever a predicate raises.
    """
    if not choice.conditional:
        return list(choice.links)
    fitting = []
    for link in choice.links:
        if link.kind == "case" and _holds(choice, link, result):
            fitting.append(link)
            if choice.exclusive:
                break  # the rest is not even asked
    if fitting:
        return fitting
    if choice.default is not None:
        return [choice.default]
    if choice.exclusive:
        found = f": {choice.on} = {_value(choice, result)!r}" if choice.on else ""
        raise NoCase(f"{choice.row}: no case fits what {step} gave{found}")
    return []


def onward(loop: Loop, result: Any, visit: int) -> Link:
    """Where the last step of a loop goes on.

    Raises:
        NoCase: the bound is reached and there is no other way.
        Exception: whatever the predicate raises.
    """
    if loop.until(result):
        return loop.then
    if visit < loop.at_most:
        return loop.back
    if loop.otherwise is None:
        raise NoCase(f"{loop.row}: still not so after {visit} visits")
    return loop.otherwise


def _holds(choice: Choice, link: Link, result: Any) -> bool:
    if link.case is not None:
        return bool(link.case.predicate(result))
    value = _value(choice, result)
    several = isinstance(value, frozenset | set | list | tuple)
    if several and not choice.exclusive:
        return link.value in value
    return bool(link.value == value)


def _value(choice: Choice, result: Any) -> Any:
    """The field that is compared; the result itself when the name is empty."""
    return getattr(result, choice.on, None) if choice.on else result
