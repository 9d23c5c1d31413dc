"""What operators can do with processes and events: one class for each action, in a module of its name.

`base` has what they share, `registry` knows them all, `circumstances` has what decides which can be done, `audit` how
each is recorded.
"""

from orchestrator.engine.events.preview import Preview, preview
from orchestrator.engine.operations.assign import assign
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    EventOperation,
    Given,
    Operation,
    Press,
    ProcessOperation,
    Tried,
)
from orchestrator.engine.operations.bulk import (
    Pace,
    Wanted,
    cancel_bulk,
    in_bulk,
    moment_shown,
    pace_of,
    pause_bulk,
    repeat_bulk,
    resume_bulk,
    start_bulk,
)
from orchestrator.engine.operations.cancel import cancel
from orchestrator.engine.operations.circumstances import Circumstances
from orchestrator.engine.operations.decide import decide
from orchestrator.engine.operations.deliver import deliver
from orchestrator.engine.operations.discard import discard
from orchestrator.engine.operations.escalate import escalate
from orchestrator.engine.operations.export_process import export
from orchestrator.engine.operations.import_process import import_
from orchestrator.engine.operations.pause import pause, unpause
from orchestrator.engine.operations.redeliver import redeliver
from orchestrator.engine.operations.redo import redo
from orchestrator.engine.operations.registry import (
    OPERATIONS,
    on_events,
    on_processes,
    refusals,
    refusals_of,
    register,
)
from orchestrator.engine.operations.restart import restart
from orchestrator.engine.operations.resume import resume
from orchestrator.engine.operations.retry import retry
from orchestrator.engine.operations.selection import (
    SELECTIONS,
    Chunk,
    Found,
    Selection,
    register_selection,
)
from orchestrator.engine.operations.skip import skip
from orchestrator.engine.operations.skip_command import skip_command

__all__ = [
    "OPERATIONS",
    "SELECTIONS",
    "ActionRequest",
    "Chunk",
    "Circumstances",
    "EventOperation",
    "Found",
    "Given",
    "Operation",
    "Pace",
    "Press",
    "Preview",
    "ProcessOperation",
    "Selection",
    "Tried",
    "Wanted",
    "assign",
    "cancel",
    "cancel_bulk",
    "decide",
    "deliver",
    "discard",
    "escalate",
    "export",
    "import_",
    "in_bulk",
    "moment_shown",
    "on_events",
    "on_processes",
    "pace_of",
    "pause",
    "pause_bulk",
    "preview",
    "redeliver",
    "redo",
    "refusals",
    "refusals_of",
    "register",
    "register_selection",
    "repeat_bulk",
    "restart",
    "resume",
    "resume_bulk",
    "retry",
    "skip",
    "skip_command",
    "start_bulk",
    "unpause",
]
