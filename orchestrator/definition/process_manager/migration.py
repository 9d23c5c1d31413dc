"""Migration of a process manager's process to another version. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.definition.codec import encode
from orchestrator.definition.declarations.migrating import MigratesFrom, migrate_data
from orchestrator.definition.process_manager.state_machine import StateMachine
from orchestrator.exceptions import NotMigrated
from orchestrator.text import Text


@dataclass(frozen=True)
class MigratedManager:
    """The step and data of a process in the other version.

    Args:
        step: the step.
        data: the data, as an instance of that version's data class.
        body: the data as JSON values.
    """

    step: StrEnum
    data: Any
    body: dict[str, Any]


def migrate_place(
    definition: type[StateMachine],
    step: str,
    mapping: Mapping[str, str],
    body: Mapping[str, Any],
    row: MigratesFrom,
) -> MigratedManager:
    """Return the step and data that a process would have in the other version.

    Args:
        definition: the other version.
        step: the current step.
        mapping: the step of the other version for each step.
        body: the stored data, as JSON values.
        row: the migration that the other version declares.

    Raises:
        NotMigrated: the process cannot migrate; the error has the reason.
        Exception: the conversion function of the migration failed.
    """
    target = mapping.get(step, "")
    if target not in {str(one) for one in definition.waiting_steps()}:
        raise NotMigrated(_why_no_target(definition.version, step, target))
    made = migrate_data(definition.Data, body, row)
    return MigratedManager(definition.Step(target), made, encode(made))


def _why_no_target(version: int, step: str, target: str) -> Text:
    if not target:
        return Text(
            "version %(version)s has no step that %(step)s is mapped to", version, step
        )
    return Text(
        "nothing waits in %(place)s of version %(version)s: %(step)s cannot go on there",
        target,
        version,
        step,
    )
