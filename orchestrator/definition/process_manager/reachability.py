"""Can every step be reached, and can every step come to an end?"""

from __future__ import annotations

from collections import defaultdict

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
            invalid(cls.__name__, None, reason)
