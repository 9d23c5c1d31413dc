"""Whether a workflow's process can go over to another version: only where its history is one of that version too.

After the compliance criterion of Rinderle, Reichert and Dadam, Correctness Criteria for Dynamic Changes in Workflow
Systems (2004): what has happened, under the names of the other version, must be what that version would have done. Then
whatever reads the history later (a resume, a redo, the invariants) reads it as if it had always run so. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from orchestrator.definition.workflow.advance import Arrivals
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import Replay, Visit
from orchestrator.text import Text


class KnownVisit(NamedTuple):
    """A visit as it is stored, under the name of its step in the other version.

    Args:
        step: that name; "" where the other version has no such step: what was done there does not count any more.
        was: the name that it has now.
        visit: its number.
        kind: of the visit: step, map, wait, ask, sleep, run, or a join that waits.
        left: the revision at which it was settled; None while it is open.
        passed: whether it says that its branch was not taken.
        arrivals: of a join.
    """

    step: str
    was: str
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


def unmapped(visits: Iterable[KnownVisit], version: int) -> Iterator[str]:
    """The open visits whose steps are none of the other version."""
    for one in visits:
        if not one.step and one.open:
            yield Text(
                "%(step)s is open, and version %(version)s has no step that it is mapped to",
                one.was,
                version,
            )


def unfitting(visits: Iterable[KnownVisit], plan: Plan) -> Iterator[str]:
    """The open visits that wait for something else than their steps in the other version do."""
    for one in visits:
        vertex = plan.vertices.get(one.step)
        if not one.open or vertex is None:
            continue
        now = kind_of(vertex)
        if one.waits:
            if vertex.ways_in < 2:
                yield Text(
                    "%(step)s waits for its branches, and %(place)s joins none",
                    one.was,
                    one.step,
                )
        elif one.kind != now:
            yield Text(
                "%(step)s is of another kind than %(place)s there", one.was, one.step
            )


def kind_of(vertex: Vertex) -> str:
    """What a visit of a step is."""
    return "map" if vertex.each is not None else vertex.step.kind


def misfits(
    replay: Replay,
    visits: Iterable[KnownVisit],
    since: int = 0,
) -> Iterator[str]:
    """What in a history is not what the other version would have done.

    Args:
        replay: the other version, after all that was settled in its steps.
        visits: those that count, as they are stored.
        since: the revision at which the process was last set back; what came before to a join is not compared.
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


def _starts(replay: Replay, known: Mapping[Visit, KnownVisit]) -> Iterator[str]:
    """The visits that must have begun, and did not, or are over already."""
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
            yield Text("%(step)s was passed over, and would have begun there", one.was)
        elif one.open and replay.open.get(one.step) != one.visit:
            yield Text(
                "%(step)s is open, and nothing would wait for it there any more",
                one.was,
            )


def _unstarted(replay: Replay, known: Mapping[Visit, KnownVisit]) -> Iterator[str]:
    """The visits that must not have begun, and what must have been passed over."""
    passed, strays = set(replay.not_taken), set(replay.stray)
    for visit, one in known.items():
        if one.passed and one.step not in passed:
            yield Text(
                "%(step)s was passed over, and would not have been there", one.was
            )
        elif one.waits or one.passed or visit in replay.entered or visit in strays:
            continue
        else:
            yield Text(
                "%(step)s has begun, and nothing would have led to it there", one.was
            )
    for name in replay.not_taken:
        if (name, 1) not in known:
            yield Text(
                "%(place)s is on a branch there that would have been passed over", name
            )


def _joins(
    replay: Replay, known: Mapping[Visit, KnownVisit], since: int
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
            continue  # what came late to a join that had started was perhaps done again
        then = one.arrivals
        if (then.arrived, then.taken) != (now.arrived, now.taken):
            yield Text("%(step)s joins other branches there", one.was)
    for one in known.values():
        if one.waits and one.open and one.step not in replay.joins:
            yield Text(
                "%(step)s waits for its branches, and none would have arrived there",
                one.was,
            )


def _was(known: Mapping[Visit, KnownVisit], visit: Visit) -> str:
    one = known.get(visit)
    return one.was if one is not None else visit[0]
