"""Tolerated failures: a join that needs fewer branches continues without the failed branch."""

from __future__ import annotations

from collections import Counter

from orchestrator.definition.workflow.advance import Arrivals, ReadJoins
from orchestrator.definition.workflow.plan import Plan, Vertex


def tolerates_failure(plan: Plan, step: str, read_joins: ReadJoins) -> bool:
    """Return whether a process can continue after a step's failure: all ways from it end in joins that need fewer."""
    waiting, dead = [step], Counter[str]()
    while waiting:
        links = plan[waiting.pop()].regular
        if not links:
            return False
        for link in links:
            target = plan[link.target]
            if target.join is not None and target.needed is not None:
                dead[target.name] += 1
            elif target.ways_in == 1:
                waiting.append(target.name)
            else:
                return False
    joins = read_joins(list(dead))
    return all(
        _still_reachable(plan[name], joins.get(name, Arrivals()), count)
        for name, count in dead.items()
    )


def _still_reachable(target: Vertex, now: Arrivals, dead: int) -> bool:
    """Return whether the join has started, or still can without the dead ways."""
    open_ways = target.ways_in - now.arrived - dead
    return now.fired or now.taken + open_ways >= (target.needed or 0)
