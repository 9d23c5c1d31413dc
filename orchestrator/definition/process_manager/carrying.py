"""Moves a process manager's process to another version, without side effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.definition.codec import encode
from orchestrator.definition.migrating import MigratesFrom, carried_data
from orchestrator.definition.process_manager.state_machine import StateMachine
from orchestrator.exceptions import NotMigrated
from orchestrator.text import Text


@dataclass(frozen=True)
class CarriedManager:
    """The place of a process in the other version.

    Args:
        step: the step.
        data: the data, as that version declares it.
        body: the same as JSON values.
    """

    step: StrEnum
    data: Any
    body: dict[str, Any]


def carried(
    definition: type[StateMachine],
    step: str,
    mapping: Mapping[str, str],
    body: Mapping[str, Any],
    row: MigratesFrom,
) -> CarriedManager:
    """The place that a process would have in the other version.

    Args:
        definition: the other version.
        step: in which it waits now.
        mapping: which step of the other version each step is.
        body: its stored data, as JSON values.
        row: how the other version says that processes come over.

    Raises:
        NotMigrated: it cannot go over, with the reason.
        Exception: whatever the function raises that makes the data.
    """
    target = mapping.get(step, "")
    if target not in {str(one) for one in definition.waiting_steps()}:
        raise NotMigrated(
            Text(
                "nothing waits in %(place)s of version %(version)s: %(step)s cannot go on there",
                target,
                definition.version,
                step,
            )
            if target
            else Text(
                "version %(version)s has no step that %(step)s is mapped to",
                definition.version,
                step,
            )
        )
    made = carried_data(definition.Data, body, row)
    return CarriedManager(definition.Step(target), made, encode(made))
