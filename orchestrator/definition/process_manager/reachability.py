"""Can every step be reached, and can every step come to an end?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum

from orchestrator.definition.invalid import invalid
from orchestrator.definition.process_manager.state_machine import StateMachine
from orchestrator.definition.topology import closure


def check_reachability(cls: type[StateMachine]) -> None:
    """Follows the rows forwards from the first step, and backwards from the final ones.

    Raises:
        InvalidDefinition: naming a step that can never be reached, or never be left for good.
    """
    forward: dict[str, set[str]] = defaultdict(set)
    backward: dict[str, set[str]] = defaultdict(set)
    for step, rows in cls.rows.items():
        for target in (row.target for row in rows if row.target):
            forward[step].add(target)
            backward[target].add(step)
    reached, ending = closure([cls.first], forward), closure(cls.finals, backward)
    for step in cls.Step:
        if step not in reached:
            invalid(cls.__name__, None, f"{step} can never be reached")
        if step not in ending:
            reason = f"{step} is a dead end: no final step can be reached from it"
            invalid(cls.__name__, None, reason + _staying(cls, step, forward))


def _staying(
    cls: type[StateMachine], step: StrEnum, forward: Mapping[str, set[str]]
) -> str:
    """Where it may have been forgotten to say what comes next: a step that the dead end leads to, and none leaves."""
    for last in sorted(closure([step], forward)):
        rows = cls.rows.get(cls.Step(last), ())
        if not forward.get(last):
            why = f"none of the rows of {last} says .go_to(...)"
            return f"; {why if rows else f'{last} has no rows, and is not in final = [...]'}"
    return ""
