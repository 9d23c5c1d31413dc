"""Migrate: a process goes over to another version of its definition, in one commit, or stays with the reason why."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Given, Press, ProcessOperation
from orchestrator.engine.operations.migrating import manager, plan, workflow
from orchestrator.engine.operations.migrating.manager import ManagerMigration
from orchestrator.engine.operations.migrating.workflow import WorkflowMigration
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.repairing.plan import asked_of_code
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.switches import MIGRATE
from orchestrator.models import Definition, ProcessInstance

Moves = list[tuple[str, str]]
"""The steps in which a process stands, and those in which it would."""


class MigrateProcess(ProcessOperation):
    """Has a process go on with another version: its open steps are those of that version from now on.

    What has happened stays as it was, on the picture of its own version. Nothing is run by it.
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
            "steps",
            "json",
            _("Steps by their old names, as JSON"),
            lambda instance: {},
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
        is_workflow = definitions.is_workflow(instance)
        return told if is_workflow else {**told, "data": instance.data}

    def effect(self, press: Press, version: Any, steps_json: Any) -> dict[str, Any]:
        idle_limit.allow(idle_limit.LONG)
        told = _planned(press.process, version, steps_json).carry_out(press)
        return {**self.before(press.process), **told}


migrate = register(MigrateProcess())


def plan_migration(instance: ProcessInstance, version: Any, steps: Any) -> Moves:
    """Where a process would stand in another version; nothing is locked or changed.

    Raises:
        OperationRefused: what is wanted cannot be read, or the application's code raises something.
        NotMigrated: it cannot go over, with the reason.
        UnknownDefinition: the running code does not have that version.
    """
    with asked_of_code(instance), transaction.atomic():
        moves = _planned(instance, version, steps).moves
        transaction.set_rollback(True)
    return moves


def _planned(
    instance: ProcessInstance, version: Any, steps: Any
) -> ManagerMigration | WorkflowMigration:
    """Where a process would stand; it is not carried over."""
    target = plan.target_of(instance, version, steps)
    if definitions.is_workflow(instance):
        return workflow.planned(instance, target)
    return manager.planned(instance, target)
