"""The steps that a retry, a redo or a resumption of a workflow would repeat, in words.

It reads only the newest visits; its words tell if older visits may add steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from django.utils.translation import gettext as _

from monitoring.base.graphs import running_plan
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

LOOKED_AT = 500
"""The maximum number of visits that it reads."""

NAMED = 8
"""The maximum number of steps that it names."""

ALREADY = (StepStatus.NOT_TAKEN, StepStatus.SUPERSEDED, StepStatus.CANCELLED)
"""Statuses of visits that no action repeats."""


class SettledStep(NamedTuple):
    """The step of a visit, and the revision at which the visit ended; None while it is open."""

    node: str
    left: int | None
    status: str


class RepeatedSteps:
    """The steps that an action on a workflow would repeat.

    Args:
        instance: the process.
        labels: the labels of its steps.
    """

    def __init__(self, instance: ProcessInstance, labels: Mapping[str, str]) -> None:
        self._instance, self._labels = instance, labels

    def of_step(self, node: str) -> str:
        """Return the steps that a redo of one step would repeat, in words."""
        return self._said([node])

    def since(self, revision: int) -> str:
        """Return the steps that a resumption from a checkpoint would repeat: those of later and open visits."""
        visits = self._visits
        later = [v.node for v in visits if v.left is None or v.left > revision]
        return self._said(later, more=len(visits) >= LOOKED_AT)

    @property
    def of_failed(self) -> str:
        """The steps that a retry would repeat, in words."""
        failed = (StepStatus.FAILED, StepStatus.RETRYING)
        still = (v for v in self._visits if v.left is None and v.status in failed)
        return self._said(visit.node for visit in still)

    @cached_property
    def _visits(self) -> list[SettledStep]:
        """The newest visits, by the index of visits that are not elements of maps."""
        rows = StepRun.objects.filter(instance=self._instance, item=None)
        rows = rows.exclude(kind__in=[StepKind.JOIN, StepKind.UNDO], finished_at=None)
        newest = rows.order_by("-started_at", "-pk")
        told = newest.values_list("node", "left", "status", "kind")[:LOOKED_AT]
        return [
            SettledStep(node, left, status)
            for node, left, status, kind in told
            if status not in ALREADY and kind not in (StepKind.JOIN, StepKind.UNDO)
        ]

    @cached_property
    def _vertices(self) -> Mapping[str, Vertex]:
        plan = running_plan(self._instance.definition)
        return plan.vertices if plan is not None else {}

    def _said(self, nodes: Iterable[str], *, more: bool = False) -> str:
        names = list(dict.fromkeys(nodes))
        if not names:
            return ""
        unsafe = [one for one in names if self._is_unsafe(one)]
        said = _("Done again: %(steps)s.") % {"steps": self._listed(names, more=more)}
        if unsafe:
            twice = _("Not idempotent, so done twice outside: %(steps)s.")
            said += " " + twice % {"steps": self._listed(unsafe)}
        return said

    def _is_unsafe(self, node: str) -> bool:
        vertex = self._vertices.get(node)
        runs = vertex is not None and vertex.step.function is not None
        return bool(runs and vertex and not vertex.step.policy.idempotent)

    def _listed(self, names: list[str], *, more: bool = False) -> str:
        said = ", ".join(self._labels.get(one, one) for one in names[:NAMED])
        left = len(names) - NAMED
        if left > 0:
            said += " " + _("and %(number)s more") % {"number": f"{left:,}"}
        return f"{said} …" if more else said
