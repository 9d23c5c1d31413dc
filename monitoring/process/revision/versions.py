"""The versions of a process in the course of its migrations; its history uses the names of each version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from django.utils.translation import gettext as _

from monitoring.base.differences import FieldChange
from monitoring.base.graphs import labels_of, stored_graph
from monitoring.process.revision.entries import Entry
from orchestrator.definition.graph import Edge
from orchestrator.engine.operations import (
    Switch,
    step_name_at,
    stored_definition_at,
    switches_of,
)
from orchestrator.models import Definition, ProcessInstance


class Versions:
    """The migrations of a process from one version to another.

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
        """Return the stored definition at a revision."""
        return stored_definition_at(self.instance, revision, self.switches)

    def name_at(self, name: str, revision: int) -> str:
        """Return the name that a step had at a revision, by its name now."""
        return step_name_at(name, revision, self.switches)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels of the steps of all versions; a newer version wins over an older one."""
        newest = labels_of(self.instance.definition)
        if not self.switches:
            return newest
        found: dict[str, str] = {}
        for switch in self.switches:
            found |= labels_of(self.definition_at(switch.revision - 1))
        return {**found, **newest}

    def label_at(self, name: str, revision: int) -> str:
        """Return the label that a step had at a revision, by its name now."""
        if self._later(revision):
            name = self.name_at(name, revision)
            return labels_of(self.definition_at(revision)).get(name, name)
        return self.labels.get(name, name)

    def add_changes(self, entries: Iterable[Entry]) -> None:
        """Add to the rows of migrations the versions and the renamed steps."""
        rows = {entry.revision: entry for entry in entries}
        later = [
            *(one.version for one in self.switches[1:]),
            self.instance.definition.version,
        ]
        for switch, to in zip(self.switches, later, strict=False):
            if switch.revision in rows:
                changed = [FieldChange(_("version"), switch.version, to)]
                rows[switch.revision].changes[:0] = changed + self._renamed(switch)

    def _renamed(self, switch: Switch) -> list[FieldChange]:
        """Return the renamed steps of a workflow; the row of a process manager already has its step."""
        if not self.instance.definition.is_workflow:
            return []
        before = labels_of(self.definition_at(switch.revision - 1))
        after = labels_of(self.definition_at(switch.revision))
        return [
            FieldChange(_("step"), before.get(old, old), after.get(new, new))
            for old, new in switch.steps.items()
        ][:RENAMED]

    def edges(self, edges: Mapping[int, set[str]], until: int) -> set[str]:
        """Translate edges to the version at a revision.

        Args:
            edges: the taken edges, by the first revision of their version.
            until: the revision.
        """
        if not self._later(0):
            return set().union(*edges.values())
        wanted = stored_graph(self.definition_at(until)).edges
        found: set[str] = set()
        for first, taken in edges.items():
            pinned = self.definition_at(first)
            if pinned.pk == self.definition_at(until).pk:
                found |= taken
                continue
            known = stored_graph(pinned).edges
            ways = {self._way(edge, first, until) for edge in known if edge.id in taken}
            found |= {edge.id for edge in wanted if _way(edge) in ways}
        return found

    def _way(self, edge: Edge, since: int, until: int) -> tuple[str, ...]:
        """Return an edge at one revision, in the names of a later revision."""
        names = [edge.source, edge.target]
        for switch in self.switches:
            if since < switch.revision <= until:
                names = [switch.steps.get(name, name) for name in names]
        return (*names, edge.kind, edge.event)

    def spans(self, until: int) -> list[tuple[int, int]]:
        """Return the first and last revision of each version, in order, until a revision."""
        firsts = [switch.revision for switch in self.switches]
        firsts = [0, *(first for first in firsts if first <= until)]
        lasts = [*(first - 1 for first in firsts[1:]), until]
        return list(zip(firsts, lasts, strict=True))

    def _later(self, revision: int) -> bool:
        """Whether a migration came after a revision."""
        return any(switch.revision > revision for switch in self.switches)


RENAMED = 8
"""The number of renamed steps that one row names."""


def _way(edge: Edge) -> tuple[str, ...]:
    return edge.source, edge.target, edge.kind, edge.event
