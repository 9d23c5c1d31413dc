"""The versions that a process has been on: each part of its history is told by the names of its own time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from django.utils.translation import gettext as _

from monitoring.queries.graphs import graph_of, labels_of, start_of
from monitoring.queries.instance.entries import Entry, FieldChange
from monitoring.queries.instance.once import once_of
from orchestrator.definition.graph import Edge
from orchestrator.engine.operations import Switch, named_at, pinned_at, switches_of
from orchestrator.models import Definition, ProcessInstance


class Versions:
    """When a process went from one version to another.

    Args:
        instance: the process, as it is now.
    """

    def __init__(self, instance: ProcessInstance) -> None:
        self.instance = instance

    @cached_property
    def switches(self) -> Sequence[Switch]:
        """Its migrations, the first one first."""
        return switches_of(self.instance)

    def definition_at(self, revision: int) -> Definition:
        """The stored definition that it was on at a revision."""
        return pinned_at(self.instance, revision, self.switches)

    def name_at(self, name: str, revision: int) -> str:
        """The name that a step, which is stored under this one now, had at a revision."""
        return named_at(name, revision, self.switches)

    def labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """The steps of all its versions as people read them; where two have one name, that of the newer one."""
        if not self.switches:
            return labels
        found: dict[str, str] = {}
        for switch in self.switches:
            found |= labels_of(self.definition_at(switch.revision - 1))
        return {**found, **labels_of(self.instance.definition)}

    def label_at(self, name: str, revision: int, labels: Mapping[str, str]) -> str:
        """A step, stored under this name now, as people read it at a revision."""
        if self._later(revision):
            name = self.name_at(name, revision)
            return labels_of(self.definition_at(revision)).get(name, name)
        return labels.get(name, name)

    def start(self, start: str) -> str:
        """The step in which it has begun, given that in which processes of one of its versions begin."""
        return start_of(graph_of(self.definition_at(0))) if self.switches else start

    def noted(self, entries: Iterable[Entry]) -> None:
        """Says in the rows of its migrations from which version to which they were, and which steps became which."""
        for place, switch in enumerate(self.switches):
            to = (
                self.switches[place + 1].version
                if place + 1 < len(self.switches)
                else self.instance.definition.version
            )
            for entry in entries:
                if entry.revision == switch.revision:
                    changed = [FieldChange(_("version"), switch.version, to)]
                    entry.changes[:0] = changed + self._renamed(switch)

    def _renamed(self, switch: Switch) -> list[FieldChange]:
        """The steps of a workflow that have other names since; of a process manager the row says it already."""
        if not self.instance.definition.is_workflow:
            return []
        before = labels_of(self.definition_at(switch.revision - 1))
        after = labels_of(self.definition_at(switch.revision))
        return [
            FieldChange(_("step"), before.get(old, old), after.get(new, new))
            for old, new in switch.steps.items()
        ][:RENAMED]

    def edges(self, edges: Mapping[int, set[str]], until: int) -> set[str]:
        """Edges as those of the version at a revision.

        Args:
            edges: those that were taken, by the first revision of the version that they are of.
            until: the revision.
        """
        if not self._later(0):
            return set().union(*edges.values())
        wanted = graph_of(self.definition_at(until)).edges
        found: set[str] = set()
        for first, taken in edges.items():
            pinned = self.definition_at(first)
            if pinned.pk == self.definition_at(until).pk:
                found |= taken
                continue
            known = graph_of(pinned).edges
            ways = {self._way(edge, first, until) for edge in known if edge.id in taken}
            found |= {edge.id for edge in wanted if _way(edge) in ways}
        return found

    def _way(self, edge: Edge, since: int, until: int) -> tuple[str, ...]:
        """An edge of the version at one revision, in the names of the version at a later one."""
        names = [edge.source, edge.target]
        for switch in self.switches:
            if since < switch.revision <= until:
                names = [switch.steps.get(name, name) for name in names]
        return (*names, edge.kind, edge.event)

    def spans(self, until: int) -> list[tuple[int, int]]:
        """The revisions, first and last, in which it was on one version after the other until a revision."""
        firsts = [switch.revision for switch in self.switches]
        firsts = [0, *(first for first in firsts if first <= until)]
        lasts = [*(first - 1 for first in firsts[1:]), until]
        return list(zip(firsts, lasts, strict=True))

    def _later(self, revision: int) -> bool:
        """Whether it went over to another version after a revision."""
        return any(switch.revision > revision for switch in self.switches)


RENAMED = 8
"""Renamed steps that one row names."""


def versions_of(instance: ProcessInstance) -> Versions:
    """The versions that a process has been on, asked once for a page."""
    return once_of(instance, Versions)


def _way(edge: Edge) -> tuple[str, ...]:
    return edge.source, edge.target, edge.kind, edge.event
