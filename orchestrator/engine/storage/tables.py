"""The tables that the engine writes."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from orchestrator.engine.storage.event_table import EventTable
from orchestrator.engine.storage.instance_table import InstanceTable
from orchestrator.engine.storage.join_table import JoinTable
from orchestrator.engine.storage.outside_id_table import OutsideIdTable
from orchestrator.engine.storage.table import Table
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    Checkpoint,
    Incident,
    IssuedCommand,
    Occurrence,
    OperatorAction,
    StepRun,
)

instances = InstanceTable()
outside_ids = OutsideIdTable()
step_runs = Table(StepRun)
joins = JoinTable()
checkpoints = Table(Checkpoint)
commands = Table(IssuedCommand)
events = EventTable()
incidents = Table(Incident)
occurrences = Table(Occurrence)
bulk_operations = Table(BulkOperation)
bulk_items = Table(BulkItem)
operator_actions = Table(OperatorAction)

WORK: tuple[Table[Any], ...] = (events, commands, step_runs, bulk_operations)
"""The tables of what workers claim."""


def table_of(row: Model) -> Table[Any]:
    """The table that a row belongs to."""
    return TABLES[type(row)]


TABLES: dict[type[Model], Table[Any]] = {
    table.model: table for table in (instances, step_runs, commands, events)
}
