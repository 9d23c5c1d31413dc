"""Can every step be reached, and can every step come to an end?"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from orchestrator.exceptions import InvalidDefinition

if TYPE_CHECKING:
    from orchestrator.definition.process_manager.manager import ProcessManager

Edges = dict[str, set[str]]


def check_reachability(cls: type[ProcessManager]) -> None:
    """Follows the rows forwards from the first step, and backwards from the final ones.

    Raises:
        InvalidDefinition: naming a step that can never be reached, or never be left for good.
    """
    forward = {
        str(step): {str(row.target) for row in cls.rows.get(step, ()) if row.target}
        for step in cls.Step
    }
    backward: Edges = {}
    for step, targets in forward.items():
        for target in targets:
            backward.setdefault(target, set()).add(step)
    reached = _closure({str(cls.first)}, forward)
    ending = _closure({str(step) for step in cls.finals}, backward)
    for step in cls.Step:
        if str(step) not in reached:
            raise InvalidDefinition(cls.__name__, "", f"{step} can never be reached")
        if str(step) not in ending:
            reason = f"{step} is a dead end: no final step can be reached from it"
            raise InvalidDefinition(cls.__name__, "", reason)


def _closure(start: set[str], edges: Edges) -> set[str]:
    found, waiting = set(start), deque(start)
    while waiting:
        for target in edges.get(waiting.popleft(), set()) - found:
            found.add(target)
            waiting.append(target)
    return found
