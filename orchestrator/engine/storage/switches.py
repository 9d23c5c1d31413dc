"""When a process went over to another version of its definition, as the audit tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.models import Definition, OperatorAction, ProcessInstance

MIGRATE = "migrate"
"""The name of the action."""


@dataclass(frozen=True)
class Switch:
    """One migration of a process.

    Args:
        revision: the first one on the new version.
        version: on which it was until then.
        fingerprint: of the graph that it had until then.
        steps: the new names of the steps whose names are others since.
        input: whether the input of a workflow is another since.
    """

    revision: int
    version: int
    fingerprint: str
    steps: Mapping[str, str]
    input: bool = False

    @classmethod
    def told(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> Switch:
        """The migration that an audit row tells of."""
        return cls(
            after["revision"],
            before["version"],
            before["fingerprint"],
            after["steps"],
            "input" in after,
        )

    def was(self, name: str) -> str:
        """The name that a step had before it."""
        return next((old for old, new in self.steps.items() if new == name), name)


def switches_of(instance: ProcessInstance) -> list[Switch]:
    """The migrations of a process, the first one first."""
    rows = OperatorAction.objects.filter(
        instance=instance.pk, action=MIGRATE, result=OperatorAction.Result.DONE
    )
    told = rows.values_list("before", "after")
    found = [Switch.told(before, after) for before, after in told]
    return sorted(found, key=lambda switch: switch.revision)


def pinned_at(
    instance: ProcessInstance, revision: int, switches: Sequence[Switch]
) -> Definition:
    """The stored definition that a process was on at a revision; what it is on now where that row is gone."""
    later = next((one for one in switches if one.revision > revision), None)
    if later is None:
        return instance.definition
    rows = Definition.objects.defer("graph").filter(
        name=instance.name, version=later.version, fingerprint=later.fingerprint
    )
    return rows.first() or instance.definition


def named_at(name: str, revision: int, switches: Sequence[Switch]) -> str:
    """The name that a step, which has this one now, had at a revision."""
    for switch in reversed(switches):
        if switch.revision > revision:
            name = switch.was(name)
    return name
