"""The version and the mapping of steps that a person wants, and checks for both kinds of process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import registry
from orchestrator.definition.declarations.migrating import MigratesFrom
from orchestrator.engine.operations.repairing.plan import lost_key
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import NotMigrated, OperationRefused
from orchestrator.models import Definition, IssuedCommand, ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text

MOST = 5_000
"""Steps in the mapping of one request."""

BUSY = Text(
    "a worker is at %(step)s now: try again in a moment, or pause the process first"
)

RECENT = 1_000
"""Revisions whose commands are checked: mostly one of the newest revisions has issued a command under way."""


@dataclass(frozen=True)
class MigrationTarget:
    """The version to which a person wants to migrate a process.

    Args:
        definition: the version, in the running code.
        pinned: the stored row of the present version.
        row: the `migrates_from` of the definition for the present version.
        chosen: the person's mapping of steps, in addition to the row's.
    """

    definition: DefinitionClass
    pinned: Definition
    row: MigratesFrom
    chosen: Mapping[str, str]


def migration_target(
    instance: ProcessInstance, version: Any, steps: Any
) -> MigrationTarget:
    """Return the version to which a person wants to migrate a process.

    Args:
        instance: the process.
        version: the number of the version.
        steps: the person's mapping of steps; "" for a step that the version does not have.

    Raises:
        OperationRefused: `version` is no version number, or `steps` no mapping of steps.
        NotMigrated: the process is on that version already, or the version is of another kind.
        UnknownDefinition: the running code does not have that version.
    """
    _check(version, steps)
    found = registry.find_definition(instance.name, version)
    pinned = instance.definition
    if found.kind != pinned.kind:
        raise NotMigrated(
            "version %(version)s of %(name)s is of another kind", version, instance.name
        )
    known: Any = found
    static = getattr(known, "static", known) is not None
    same = pinned.version == version and static
    if same and definitions.row_key(found) == pinned.pk:
        raise NotMigrated("it is on version %(version)s already", version)
    row = found.migration_from(pinned.version)
    return MigrationTarget(found, pinned, row, dict(steps))


def _check(version: Any, steps: Any) -> None:
    if type(version) is not int or version < 1:
        raise OperationRefused(Text("name the version by its number"))
    named = isinstance(steps, Mapping) and len(steps) <= MOST
    texts = [*steps.keys(), *steps.values()] if named else []
    if not named or any(not isinstance(one, str) for one in texts):
        raise OperationRefused(
            'name steps as {"old": "new"}, at most %(most)s of them', f"{MOST:,}"
        )


def check_commands_done(instance: ProcessInstance) -> None:
    """Check that no command is under way: its result belongs to the version that has issued it.

    Raises:
        NotMigrated: a command is under way.
    """
    under_way = instance.commands.filter(
        revision__gt=instance.revision - RECENT, status__in=IssuedCommand.UNDER_WAY
    )
    command = under_way.values_list("type", flat=True).first()
    if command is not None:
        raise NotMigrated(
            "the command %(type)s is under way: wait until it is carried out, or skip it",
            command,
        )


def check_key_kept(
    definition: DefinitionClass, instance: ProcessInstance, message: object
) -> None:
    """Check that the process keeps its business key with the data of the other version.

    Raises:
        NotMigrated: the data has another key.
    """
    if reason := lost_key(definition, instance, message):
        raise NotMigrated(reason)
