"""Acknowledge: a person takes over an escalated process."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.text import Text


class AcknowledgeEscalation(ProcessOperation):
    """Ends the escalation of a process; a process without an owner gets the operator as its owner."""

    name = "acknowledge"
    label = _("Acknowledge")
    done = _("Acknowledged.")
    may = _("Can acknowledge an escalation")
    text = _(
        "The process is no longer shown as escalated, until it is escalated again. If it has no owner, it is yours."
    )
    icon = "done"
    rank = 35
    on_whole = True
    on_many = True
    in_bulk = True

    def concerns(self, process: Circumstances) -> bool:
        return process.instance.escalation_level > 0

    def obstacle(self, process: Circumstances) -> str:
        return "" if self.concerns(process) else Text("It is not escalated")

    def effect(self, press: Press) -> dict[str, Any]:
        change = ProcessChange(press.process, press.cause, press.now)
        press.process.escalation_level, press.process.escalated_at = 0, None
        if press.process.owner_id is None:
            change.extra["owner"] = press.request.actor.pk
        change.write()
        mine = press.process.owner_id is None
        return {"owner": press.request.actor.get_username()} if mine else {}


acknowledge = register(AcknowledgeEscalation())
