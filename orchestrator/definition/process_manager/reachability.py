"""The checks that every step can be reached, and that every step can lead to a final step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum

from orchestrator.definition.process_manager.state_machine import StateMachine
from orchestrator.definition.topology import closure


def reachability_mistakes(cls: type[StateMachine]) -> Iterator[str]:
    """Report steps that the first step does not lead to, and steps that lead to no final step."""
    forward: dict[str, set[str]] = defaultdict(set)
    backward: dict[str, set[str]] = defaultdict(set)
    for step, rows in cls.rows.items():
        for target in (row.target for row in rows if row.target):
            forward[step].add(target)
            backward[target].add(step)
    reached, ending = closure([cls.first], forward), closure(cls.finals, backward)
    for step in cls.Step:
        if step not in reached:
            yield f"{step} can never be reached"
        if step not in ending:
            reason = f"{step} is a dead end: no final step can be reached from it"
            yield reason + _staying(cls, step, forward)


def _staying(
    cls: type[StateMachine], step: StrEnum, forward: Mapping[str, set[str]]
) -> str:
    """Name the step after a dead end that probably lacks a transition."""
    for last in sorted(closure([step], forward)):
        rows = cls.rows.get(cls.Step(last), ())
        if not forward.get(last):
            why = f"none of the rows of {last} says .go_to(...)"
            return f"; {why if rows else f'{last} has no rows, and is not in final = [...]'}"
    return ""
