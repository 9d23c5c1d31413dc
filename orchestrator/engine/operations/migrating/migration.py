"""Migrate: moves a process to another version of its definition in one commit, or refuses with the reason."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.migrating.manager import (
    ManagerMigration,
    plan_manager_migration,
)
from orchestrator.engine.operations.migrating.plan import migration_target
from orchestrator.engine.operations.migrating.workflow import (
    WorkflowMigration,
    plan_workflow_migration,
)
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.repairing.plan import refuse_code_errors
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.switches import MIGRATE
from orchestrator.models import Definition, ProcessInstance

Moves = list[tuple[str, str]]
"""The open steps of a process, each with its step in another version."""


class MigrateProcess(ProcessOperation):
    """Moves a process to another version of its definition, with the open steps of that version.

    The history of the process stays as it was, on the diagram of its own version. The action runs no step.
    """

    name = MIGRATE
    label = _("Migrate")
    done = _("Migrated.")
    may = _("Can migrate a process to another version")
    text = _(
        "Goes on with another version of the definition. What has happened stays as it was; nothing is run by it. "
        "A process that does not fit is left as it is, with the reason."
    )
    icon = "arrow"
    given = (
        Given("version", "number", _("To version")),
        Given(
            "steps", "json", _("Steps by their old names, as JSON"), lambda instance: {}
        ),
    )
    in_bulk = True
    with_parents = True
    on_own_page = True
    while_undoing = False
    else_restart = True

    def before(self, instance: ProcessInstance) -> dict[str, Any]:
        rows = Definition.objects.filter(pk=instance.definition_id)
        version, fingerprint = rows.values_list("version", "fingerprint").get()
        told = {"version": version, "fingerprint": fingerprint}
        is_workflow = definitions.runs_workflow(instance)
        return told if is_workflow else {**told, "data": instance.data}

    def effect(self, press: Press, version: Any, steps_json: Any) -> dict[str, Any]:
        allow_idle(LONG_IDLE)
        told = _migration(press.process, version, steps_json).carry_out(press)
        return {**self.before(press.process), **told}


migrate = register(MigrateProcess())


def plan_migration(instance: ProcessInstance, version: Any, steps: Any) -> Moves:
    """Return the steps of a process in another version; locks and changes nothing.

    Raises:
        OperationRefused: the version or the mapping cannot be read, or the application's code raises an error.
        NotMigrated: the process does not fit the version.
        UnknownDefinition: the running code does not have that version.
    """
    with refuse_code_errors(instance), transaction.atomic():
        moves = _migration(instance, version, steps).moves
        transaction.set_rollback(True)
    return moves


def _migration(
    instance: ProcessInstance, version: Any, steps: Any
) -> ManagerMigration | WorkflowMigration:
    """The migration of a process, not carried out."""
    target = migration_target(instance, version, steps)
    if definitions.runs_workflow(instance):
        return plan_workflow_migration(instance, target)
    return plan_manager_migration(instance, target)
