"""Carrying a process manager's process over to another version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from orchestrator.definition import ProcessManager
from orchestrator.definition.process_manager.carrying import CarriedManager, carried
from orchestrator.engine.change import pausing, secret_values
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.migrating.plan import (
    BUSY,
    MigrationTarget,
    check_commands,
    key_kept,
)
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.tables import outside_ids, step_runs
from orchestrator.exceptions import NotMigrated
from orchestrator.models import Definition, ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text


@dataclass(frozen=True)
class ManagerMigration:
    """Where it would stand.

    Args:
        definition: the other version.
        run: the open visit.
        place: step and data there.
        pinned: the stored version that it is on.
    """

    definition: type[ProcessManager]
    run: StepRun
    place: CarriedManager
    pinned: Definition

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The steps in which it stands, and those in which it would."""
        return [(self.run.node, str(self.place.step))]

    def carry_out(self, press: Press) -> dict[str, Any]:
        """Carries a locked process over, in one change; returns what the audit row tells of it.

        A step of the same name goes on: it is one visit. One of another name begins as a visit of its own. The
        deadlines of either count from when the process came to the step.
        """
        instance, definition, run = press.process, self.definition, self.run
        change = ManagerChange(instance, press.cause, press.now)
        pinned = definitions.row_of(definition)
        definitions.keep_secrets(pinned, self.pinned)
        change.pin(pinned)
        instance.data = self.place.body
        change.writes += outside_ids.renewed(instance.pk, definition, instance.data)
        instance.summary = secret_values.summary_of(
            definition, self.place.data, instance.data
        )
        step, renamed = str(self.place.step), {}
        wakes = self._wakes(instance, press.now)
        if step == run.node:
            still = {"id": run.pk, "finished_at": None, "owner": ""}
            same = {"queue": definition.queue, **({} if run.error else wakes)}
            change.mark(step_runs.update(same, still))
            change.steps[step] = run.status
        else:
            renamed = {run.node: step}
            change.go_to(
                StepRun(
                    instance_id=instance.pk,
                    node=step,
                    status=StepStatus.WAITING,
                    queue=definition.queue,
                    deadlines_fired=run.deadlines_fired,
                    extended=self._since(instance, press.now) - press.now,
                    started_at=press.now,
                    wake_at=wakes["wake_at"],
                )
            )
        if wakes["wake_at"] is not None:
            change.rings.add(definition.queue)
        change.write()
        return {"steps": renamed, "data": instance.data}

    def _since(self, instance: ProcessInstance, now: datetime) -> datetime:
        """The moment from which the deadlines of a visit count: its start plus pauses and extensions.

        Of a process that stands still, were it to go on now.
        """
        still = pausing.stood_still(instance.pk, self.run.started_at)
        if instance.paused_at is not None:
            still += now - instance.paused_at
        return self.run.started_at + still + (self.run.extended or timedelta(0))

    def _wakes(self, instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        """When the next deadline passes."""
        fired, timers = (
            self.run.deadlines_fired,
            self.definition.timers(self.place.step),
        )
        if fired >= len(timers):
            return {"wake_at": None, "remaining": None}
        since = self._since(instance, now)
        return {"wake_at": since + timers[fired], "remaining": None}


def planned(instance: ProcessInstance, target: MigrationTarget) -> ManagerMigration:
    """Where a process would stand.

    Raises:
        NotMigrated: it cannot go over now.
        Exception: whatever the application's code raises.
    """
    definition: Any = target.definition
    run = instance.step_runs.filter(finished_at=None).order_by("pk").first()
    if run is None:
        raise NotMigrated(Text("it stands in no step"))
    if run.owner:
        raise NotMigrated(BUSY.filled(run.node))
    check_commands(instance)
    steps = [str(step) for step in definition.Step]
    mapping = target.row.mapping([run.node], steps, target.chosen)
    with applications(NotMigrated):
        place = carried(definition, run.node, mapping, instance.data, target.row)
    key_kept(definition, instance, place.data)
    return ManagerMigration(definition, run, place, target.pinned)
