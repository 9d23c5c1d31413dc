"""What operators can do with processes and events: one class for each action, in a module of its name.

`base` has what they share, `registry` knows them all, `circumstances` has what decides which can be done, `audit` how
each is recorded.
"""

from orchestrator.engine.operations.assign import assign
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    EventOperation,
    Given,
    Operation,
    Press,
    ProcessOperation,
)
from orchestrator.engine.operations.cancel import cancel
from orchestrator.engine.operations.circumstances import Circumstances
from orchestrator.engine.operations.decide import decide
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
from orchestrator.engine.operations.skip import skip
from orchestrator.engine.operations.skip_command import skip_command

__all__ = [
    "OPERATIONS",
    "ActionRequest",
    "Circumstances",
    "EventOperation",
    "Given",
    "Operation",
    "Press",
    "ProcessOperation",
    "assign",
    "cancel",
    "decide",
    "discard",
    "escalate",
    "export",
    "import_",
    "on_events",
    "on_processes",
    "pause",
    "redeliver",
    "redo",
    "refusals",
    "refusals_of",
    "register",
    "restart",
    "resume",
    "retry",
    "skip",
    "skip_command",
    "unpause",
]
