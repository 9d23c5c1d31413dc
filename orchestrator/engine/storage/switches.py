"""The migrations of a process to other versions of its definition, read from the audit."""

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
        version: the earlier version.
        fingerprint: the fingerprint of the earlier graph.
        steps: the new names of renamed steps, by their earlier names.
        input: whether the migration changed a workflow's input.
    """

    revision: int
    version: int
    fingerprint: str
    steps: Mapping[str, str]
    input: bool = False

    @classmethod
    def read(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> Switch:
        """Return the migration of an audit row."""
        return cls(
            after["revision"],
            before["version"],
            before["fingerprint"],
            after["steps"],
            "input" in after,
        )

    def name_before(self, name: str) -> str:
        """Return the name that a step had before the migration."""
        return next((old for old, new in self.steps.items() if new == name), name)


def switches_of(instance: ProcessInstance) -> list[Switch]:
    """Return the migrations of a process, the first one first."""
    rows = OperatorAction.objects.filter(
        instance=instance.pk, action=MIGRATE, result=OperatorAction.Result.DONE
    )
    told = rows.values_list("before", "after")
    found = [Switch.read(before, after) for before, after in told]
    return sorted(found, key=lambda switch: switch.revision)


def stored_definition_at(
    instance: ProcessInstance, revision: int, switches: Sequence[Switch]
) -> Definition:
    """Return the stored definition of a process at a revision; its present one if that row is gone."""
    later = next((one for one in switches if one.revision > revision), None)
    if later is None:
        return instance.definition
    rows = Definition.objects.defer("graph").filter(
        name=instance.name, version=later.version, fingerprint=later.fingerprint
    )
    return rows.first() or instance.definition


def step_name_at(name: str, revision: int, switches: Sequence[Switch]) -> str:
    """Return the name at a revision of the step that has this name now."""
    for switch in reversed(switches):
        if switch.revision > revision:
            name = switch.name_before(name)
    return name
