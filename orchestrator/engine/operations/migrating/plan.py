"""Where a process would stand in another version of its definition. Planning reads the tables and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import registry
from orchestrator.definition.migrating import MigratesFrom
from orchestrator.engine.operations.repairing.plan import lost_key
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import NotMigrated, OperationRefused
from orchestrator.models import Definition, IssuedCommand, ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text

MOST = 5_000
"""Steps that a person may map by hand."""

BUSY = Text(
    "a worker is at %(step)s now: try again in a moment, or pause the process first"
)

LATELY = 1_000
"""Transitions whose commands are looked at: what is under way has mostly been issued by one of the last."""


@dataclass(frozen=True)
class MigrationTarget:
    """The version that a process is to go over to.

    Args:
        definition: in the running code.
        pinned: the stored row that the process is on now.
        row: how the code says that processes come over from there.
        chosen: which step is which, beyond what the code says.
    """

    definition: DefinitionClass
    pinned: Definition
    row: MigratesFrom
    chosen: Mapping[str, str]


def target_of(instance: ProcessInstance, version: Any, steps: Any) -> MigrationTarget:
    """The version that a process is to go over to.

    Args:
        instance: the process.
        version: its number.
        steps: which step of it each step is, as far as a person says so; "" for none.

    Raises:
        OperationRefused: it is no version, or no mapping of steps.
        NotMigrated: it is there already, or the other one is of another kind.
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
    if same and definitions.row_of(found) == pinned.pk:
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


def check_commands(instance: ProcessInstance) -> None:
    """Refuses while a command is under way: what comes of it belongs to the version that has issued it.

    Raises:
        NotMigrated: one is.
    """
    under_way = instance.commands.filter(
        revision__gt=instance.revision - LATELY, status__in=IssuedCommand.UNDER_WAY
    )
    command = under_way.values_list("type", flat=True).first()
    if command is not None:
        raise NotMigrated(
            "the command %(type)s is under way: wait until it is carried out, or skip it",
            command,
        )


def key_kept(
    definition: DefinitionClass, instance: ProcessInstance, message: object
) -> None:
    """Refuses data under which the process would not be found any more.

    Raises:
        NotMigrated: its business key would be another one.
    """
    if reason := lost_key(definition, instance, message):
        raise NotMigrated(reason)
