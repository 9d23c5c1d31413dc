"""Whether the history of a workflow's process is a history of another version too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import registry
from orchestrator.definition.codec import decode
from orchestrator.definition.workflow.advance import Arrivals
from orchestrator.definition.workflow.migration import (
    StoredVisit,
    history_mismatches,
    kind_mismatches,
    unmapped_visits,
)
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import replay_history
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import error_text
from orchestrator.engine.operations.migrating.plan import MigrationTarget
from orchestrator.engine.operations.visits.skip import result_form
from orchestrator.engine.storage.results import GIVEN, last_visit
from orchestrator.engine.storage.settled_visits import History
from orchestrator.exceptions import InvalidMessage, UnknownDefinition
from orchestrator.models import Definition, ProcessInstance, StepKind, StepStatus
from orchestrator.text import Text


@dataclass(frozen=True)
class HistoryFit:
    """A process, with its history in the words of another version.

    Args:
        instance: the process.
        target: the other version.
        plan: the graph of the other version for its input.
        history: its history, with the names of the steps there.
        mapping: the steps of the other version, by those of the present one.
    """

    instance: ProcessInstance
    target: MigrationTarget
    plan: Plan
    history: History
    mapping: Mapping[str, str]

    def reasons(self) -> Iterator[str]:
        """Yield the reasons why the process does not fit the other version."""
        visits, version = list(self._visits()), self.target.definition.version
        found = [*unmapped_visits(visits, version), *kind_mismatches(visits, self.plan)]
        found += [*self._answers(visits), *self._children()]
        yield from found
        if found:
            return
        yield from self._caught()
        try:
            replay = replay_history(self.plan, self.history.settled(self.plan))
        except BaseException as error:  # noqa: BLE001  # predicates may raise anything
            secret_values.attach_process(error, self.instance)
            yield Text(
                "its history cannot be told by the other version: %(why)s",
                error_text(error),
            )
            return
        since = max(self.history.resumed_at, default=0)
        yield from history_mismatches(replay, visits, since)
        yield from self._results()

    def _visits(self) -> Iterator[StoredVisit]:
        """The visits that count, of a map the visit of its head; and all open visits of steps without a mapping."""
        before = History(self.instance)
        for run in before.visits.values():
            name = self.mapping.get(run.node, "")
            yield StoredVisit(
                name,
                run.node,
                run.visit,
                str(run.kind),
                None if run.finished_at is None else run.left or 0,
                run.status == StepStatus.NOT_TAKEN,
                Arrivals(run.arrived, run.taken),
            )
        for run in before.runs:
            if run.finished_at is None and run.node not in self.mapping:
                yield StoredVisit("", run.node, run.visit, str(run.kind))

    def _answers(self, visits: Iterable[StoredVisit]) -> Iterator[str]:
        """Open questions that have other answers there."""
        nodes = self.target.pinned.graph["nodes"]
        details = {node["id"]: node["detail"] for node in nodes}
        new: Any = self.target.definition
        there = {node.id: node.detail for node in new.graph(self.plan).nodes}
        for one in visits:
            if one.open and one.kind == StepKind.ASK and one.step in self.plan.vertices:
                before = details.get(one.old, "").partition(", at most ")[0]
                now = there[one.step].partition(", at most ")[0]
                if before != now:
                    yield Text(
                        "the question of %(step)s is not answered yet, and has other answers there: %(choices)s",
                        one.old,
                        now,
                    )

    def _children(self) -> Iterator[str]:
        """Open steps whose sub-processes are of another definition there."""
        rows = self.instance.step_runs.filter(finished_at=None, child__isnull=False)
        pairs = rows.order_by().values_list("node", "child__name").distinct()
        for node, name in pairs:
            vertex = self.plan.vertices.get(self.mapping.get(node, ""))
            wanted = vertex.step.definition if vertex is not None else None
            if wanted is None or wanted.name != name:
                yield Text(
                    "%(step)s waits for the sub-process %(name)s, and runs none of it there",
                    node,
                    name,
                )

    def _caught(self) -> Iterator[str]:
        """Failures that an error link caught, if the link has another number there: a history names links by number."""
        runs = self.history.runs
        left = [run.left or 0 for run in runs if run.status == StepStatus.FAILED]
        if not any(left):
            return
        before = {edge["id"]: edge for edge in self.target.pinned.graph["edges"]}
        now = {
            link.id: (link.kind, link.source, link.target) for link in self.plan.links
        }
        rows = self.instance.checkpoints.filter(revision__in=left)
        for text in rows.exclude(edge="").values_list("edge", flat=True):
            for name in text.split(","):
                old = before.get(name)
                if old is None or old["kind"] != "error":
                    continue
                ends = (self.mapping.get(old[end]) for end in ("source", "target"))
                if now.get(name) != ("error", *ends):
                    yield Text(
                        "the failure of %(step)s was caught, by a way that is none there",
                        old["source"],
                    )

    def _results(self) -> Iterator[str]:
        """The results that count and are not of the type that the other version declares."""
        before = _known_plan(self.target.pinned)
        given = self.instance.step_runs.filter(status__in=GIVEN)
        given = given.exclude(kind=StepKind.UNDO)
        names = given.order_by().values_list("node", flat=True).distinct()
        for name in sorted(set(names) & self.mapping.keys()):
            vertex = self.plan[self.mapping[name]]
            old = before.vertices.get(name) if before is not None else None
            if old is not None and _same_form(old, vertex):
                continue
            rows = given.filter(node=name).order_by("visit", "round")
            for run in last_visit(rows) or ():
                if run.status == StepStatus.SKIPPED:
                    continue  # a skipped step may have any result
                try:
                    decode(result_form(vertex, run), run.result)
                except InvalidMessage as mistake:
                    yield Text(
                        "the result of %(step)s is not of the form that %(place)s gives: %(why)s",
                        name,
                        vertex.name,
                        mistake,
                    )
                    break


def _same_form(old: Vertex, new: Vertex) -> bool:
    return bool(
        old.returns == new.returns
        and old.step.event == new.step.event
        and old.step.choices == new.step.choices
    )


def _known_plan(pinned: Definition) -> Plan | None:
    """The plan of the present version, if the running code still has it."""
    try:
        found: Any = registry.find_definition(pinned.name, pinned.version)
    except UnknownDefinition:
        return None
    plan: Plan | None = found.static
    return plan
