"""The tables that the engine writes."""

from __future__ import annotations

from orchestrator.engine.storage.table import Table
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)

instances = Table(ProcessInstance)
step_runs = Table(StepRun)
checkpoints = Table(Checkpoint)
commands = Table(IssuedCommand)
events = Table(InboxEvent, order="process_id")
incidents = Table(Incident)
