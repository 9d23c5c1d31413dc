"""The language of workflows: steps, the rows that connect them, and what follows when one is done."""

from orchestrator.definition.workflow.context import Failure, StepContext
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
from orchestrator.definition.workflow.steps import ask, run, step, wait
from orchestrator.definition.workflow.workflow import Workflow

__all__ = [
    "Failure",
    "StepContext",
    "Workflow",
    "ask",
    "case",
    "catch",
    "each",
    "fork",
    "join",
    "needs",
    "repeat",
    "route",
    "run",
    "start",
    "step",
    "then",
    "undo",
    "wait",
]
