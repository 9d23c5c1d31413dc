"""The language of definitions: plain Python, no Django, no queue."""

from orchestrator.definition.declarations.guards import stored
from orchestrator.definition.declarations.migrating import migrates_from
from orchestrator.definition.declarations.transition_rows import ignore, park, reject
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_manager.manager import Decision, ProcessManager
from orchestrator.definition.process_manager.rows import ANY, after, during, when
from orchestrator.definition.secrets import secret
from orchestrator.definition.workflow.context import (
    AsyncStepContext,
    Failure,
    StepContext,
)
from orchestrator.definition.workflow.rows import (
    case,
    catch,
    each,
    fork,
    join,
    needs,
    repeat,
    route,
    start,
    then,
    undo,
)
from orchestrator.definition.workflow.steps import ask, run, sleep, step, wait
from orchestrator.definition.workflow.workflow import Workflow

__all__ = [
    "ANY",
    "AsyncStepContext",
    "Command",
    "Decision",
    "Event",
    "Failure",
    "ProcessManager",
    "StepContext",
    "Workflow",
    "after",
    "ask",
    "case",
    "catch",
    "during",
    "each",
    "fork",
    "ignore",
    "join",
    "migrates_from",
    "needs",
    "park",
    "reject",
    "repeat",
    "route",
    "run",
    "secret",
    "sleep",
    "start",
    "step",
    "stored",
    "then",
    "undo",
    "wait",
    "when",
]
