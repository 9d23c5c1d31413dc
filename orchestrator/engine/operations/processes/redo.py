"""Redo: runs one finished step again, alone."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.workflows import redoing
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.exceptions import OperationRefused
from orchestrator.text import Text


class RedoStep(ProcessOperation):
    """Runs one finished step again; of a map all elements, or those with bad results.

    The steps after it keep their results.
    """

    name = "redo"
    label = _("Redo")
    done = _("Running it again.")
    may = _("Can redo a step")
    text = _(
        "Runs this step again with the same parameters. Steps that read its old result keep theirs."
    )
    given = (Given("node", "text"),)
    of_workflows = True
    while_undoing = False

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.has_result else Text("No step is done yet")

    def effect(self, press: Press, node: str) -> dict[str, Any]:
        change = WorkflowChange.of(press.process, press.cause, press.now)
        OperationRefused.raise_for(redoing.why_no_redo(change, node))
        redoing.begin_redo(change, node, "wanted by an operator", limit=None)
        change.write()
        return {"redone": node}


redo = register(RedoStep())
