"""The check whether a workflow's process can migrate: its history must also be a history of the other version.

It follows the compliance criterion of Rinderle, Reichert and Dadam, Correctness Criteria for Dynamic Changes in
Workflow Systems (2004). The other version, run over the settled visits, must have started the same visits. Then resume,
redo and the invariants read the history as if the process had always been on the other version. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from orchestrator.definition.workflow.advance import Arrivals
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import Replay, StepVisit
from orchestrator.text import Text


class StoredVisit(NamedTuple):
    """A stored visit, under the name of its step in the other version.

    Args:
        step: the name in the other version; "" if that version has no such step and ignores the visit.
        old: the name in the current version.
        visit: the number of the visit.
        kind: step, map, wait, ask, sleep, run, or join for a join that waits.
        left: the revision that settled it; None while it is open.
        passed: whether its branch was not taken.
        arrivals: the arrivals at a join.
    """

    step: str
    old: str
    visit: int = 1
    kind: str = "step"
    left: int | None = None
    passed: bool = False
    arrivals: Arrivals = Arrivals()

    @property
    def open(self) -> bool:
        return self.left is None

    @property
    def waits(self) -> bool:
        """Whether it is a join that waits for its branches."""
        return self.kind == "join"


def unmapped_visits(visits: Iterable[StoredVisit], version: int) -> Iterator[str]:
    """Yield the open visits whose steps the other version does not have."""
    for one in visits:
        if not one.step and one.open:
            yield Text(
                "%(step)s is open, and version %(version)s has no step that it is mapped to",
                one.old,
                version,
            )


def kind_mismatches(visits: Iterable[StoredVisit], plan: Plan) -> Iterator[str]:
    """Yield the open visits of another kind than their steps in the other version."""
    for one in visits:
        vertex = plan.vertices.get(one.step)
        if not one.open or vertex is None:
            continue
        now = visit_kind(vertex)
        if one.waits:
            if vertex.ways_in < 2:
                yield Text(
                    "%(step)s waits for its branches, and %(place)s joins none",
                    one.old,
                    one.step,
                )
        elif one.kind != now:
            yield Text(
                "%(step)s is of another kind than %(place)s there", one.old, one.step
            )


def visit_kind(vertex: Vertex) -> str:
    """Return the kind of a step's visits."""
    return "map" if vertex.each is not None else vertex.step.kind


def history_mismatches(
    replay: Replay, visits: Iterable[StoredVisit], since: int = 0
) -> Iterator[str]:
    """Yield the differences between the history and that of the other version.

    Args:
        replay: a replay of the settled visits in the other version.
        visits: the stored visits that count.
        since: the revision of the last resume. Earlier arrivals at joins are not compared.
    """
    known = {(one.step, one.visit): one for one in visits if one.step}
    for visit in replay.stray:
        yield Text(
            "%(step)s was settled, and nothing leads to it in that order there",
            _was(known, visit),
        )
    yield from _starts(replay, known)
    yield from _unstarted(replay, known)
    yield from _joins(replay, known, since)


def _starts(replay: Replay, known: Mapping[StepVisit, StoredVisit]) -> Iterator[str]:
    """Yield the visits that must have begun but have not, or that have ended already."""
    for visit, by in replay.entered.items():
        one = known.get(visit)
        if one is None or one.waits:
            yield (
                Text("%(place)s would have begun at the start, and never ran", visit[0])
                if by is None
                else Text(
                    "%(place)s would have begun after %(step)s, and never ran",
                    visit[0],
                    _was(known, by),
                )
            )
        elif one.passed:
            yield Text("%(step)s was passed over, and would have begun there", one.old)
        elif one.open and replay.open.get(one.step) != one.visit:
            yield Text(
                "%(step)s is open, and nothing would wait for it there any more",
                one.old,
            )


def _unstarted(replay: Replay, known: Mapping[StepVisit, StoredVisit]) -> Iterator[str]:
    """Yield the visits that must not have begun, and the steps that must have been passed over."""
    passed, strays = set(replay.not_taken), set(replay.stray)
    for visit, one in known.items():
        if one.passed and one.step not in passed:
            yield Text(
                "%(step)s was passed over, and would not have been there", one.old
            )
        elif one.waits or one.passed or visit in replay.entered or visit in strays:
            continue
        else:
            yield Text(
                "%(step)s has begun, and nothing would have led to it there", one.old
            )
    for name in replay.not_taken:
        if (name, 1) not in known:
            yield Text(
                "%(place)s is on a branch there that would have been passed over", name
            )


def _joins(
    replay: Replay, known: Mapping[StepVisit, StoredVisit], since: int
) -> Iterator[str]:
    for name, now in replay.joins.items():
        one = known.get((name, 1))
        if one is None:
            yield Text(
                "branches of %(place)s have come together there, and nothing counts them",
                name,
            )
            continue
        if (one.left or since) < since:
            continue  # branches that came late to a started join may have run again
        then = one.arrivals
        if (then.arrived, then.taken) != (now.arrived, now.taken):
            yield Text("%(step)s joins other branches there", one.old)
    for one in known.values():
        if one.waits and one.open and one.step not in replay.joins:
            yield Text(
                "%(step)s waits for its branches, and none would have arrived there",
                one.old,
            )


def _was(known: Mapping[StepVisit, StoredVisit], visit: StepVisit) -> str:
    one = known.get(visit)
    return one.old if one is not None else visit[0]
