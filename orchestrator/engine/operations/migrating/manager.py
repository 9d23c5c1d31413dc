"""Migrating a process manager's process to another version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from orchestrator.definition import ProcessManager
from orchestrator.definition.process_manager.migration import (
    MigratedManager,
    migrate_place,
)
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.status import paused_time
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.migrating.plan import (
    BUSY,
    MigrationTarget,
    check_commands_done,
    check_key_kept,
)
from orchestrator.engine.sql.tables import outside_ids, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.exceptions import NotMigrated
from orchestrator.models import Definition, ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text


@dataclass(frozen=True)
class ManagerMigration:
    """The step and data of a process manager's process in another version.

    Args:
        definition: the other version.
        run: the open visit.
        place: step and data there.
        pinned: the stored row of the present version.
    """

    definition: type[ProcessManager]
    run: StepRun
    place: MigratedManager
    pinned: Definition

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The open step, with its step in the other version."""
        return [(self.run.node, str(self.place.step))]

    def carry_out(self, press: Press) -> dict[str, Any]:
        """Migrate the locked process in one change; return further values for the audit row."""
        instance, definition = press.process, self.definition
        change = ManagerChange(instance, press.cause, press.now)
        pinned = definitions.row_key(definition)
        definitions.keep_secrets(pinned, self.pinned)
        change.pin(pinned)
        instance.data = self.place.body
        change.writes += outside_ids.renewals(instance, definition, instance.data)
        instance.summary = secret_values.summarize(
            definition, self.place.data, instance.data
        )
        renamed = self._move(change)
        change.write()
        return {"steps": renamed, "data": instance.data}

    def _move(self, change: ManagerChange) -> dict[str, str]:
        """Moves the visit to its step in the other version; returns the new name by the old one, if they differ.

        The visit continues in a step of the same name; a step of another name gets a new visit. The deadlines of both
        count from the moment at which the process came to the step.
        """
        run, now, queue = self.run, change.now, self.definition.queue
        step, wakes = str(self.place.step), self._wakes(change.instance, now)
        if wakes["wake_at"] is not None:
            change.to_wake.add(queue)
        if step == run.node:
            still = {"id": run.pk, "finished_at": None, "owner": ""}
            same = {"queue": queue, **({} if run.error else wakes)}
            change.mark(step_runs.update(same, still))
            change.steps[step] = run.status
            return {}
        visit = StepRun(
            instance_id=change.instance.pk,
            definition=change.instance.name,
            stored_definition_id=change.instance.definition_id,
            process_started_at=change.instance.started_at,
            node=step,
            status=StepStatus.WAITING,
            queue=queue,
            deadlines_fired=run.deadlines_fired,
            extended=self._since(change.instance, now) - now,
            started_at=now,
            wake_at=wakes["wake_at"],
        )
        change.go_to(visit)
        return {run.node: step}

    def _since(self, instance: ProcessInstance, now: datetime) -> datetime:
        """The moment from which the deadlines of the visit count: its start plus pauses and extensions.

        For a paused process the pause ends now.
        """
        still = paused_time(instance.pk, self.run.started_at)
        if instance.paused_at is not None:
            still += now - instance.paused_at
        return self.run.started_at + still + (self.run.extended or timedelta(0))

    def _wakes(self, instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        """The columns with the next deadline."""
        fired = self.run.deadlines_fired
        timers = self.definition.timers(self.place.step)
        if fired >= len(timers):
            return {"wake_at": None, "remaining": None}
        since = self._since(instance, now)
        return {"wake_at": since + timers[fired], "remaining": None}


def plan_manager_migration(
    instance: ProcessInstance, target: MigrationTarget
) -> ManagerMigration:
    """Return the migration of a process, not carried out.

    Raises:
        NotMigrated: the process does not fit the other version now.
        Exception: raised by the application's code.
    """
    definition: Any = target.definition
    run = instance.step_runs.filter(finished_at=None).order_by("pk").first()
    if run is None:
        raise NotMigrated(Text("it stands in no step"))
    if run.owner:
        raise NotMigrated(BUSY.filled(run.node))
    check_commands_done(instance)
    steps = [str(step) for step in definition.Step]
    mapping = target.row.mapping([run.node], steps, target.chosen)
    with ApplicationCall(definition.name, [NotMigrated]):
        place = migrate_place(definition, run.node, mapping, instance.data, target.row)
    check_key_kept(definition, instance, place.data)
    return ManagerMigration(definition, run, place, target.pinned)
