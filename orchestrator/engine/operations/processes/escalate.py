"""Escalate: shows everybody that a process needs attention."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register


class EscalateProcess(ProcessOperation):
    """Raises a process's escalation level, for everybody to see."""

    name = "escalate"
    label = _("Escalate")
    done = _("Escalated.")
    may = _("Can escalate a process")
    text = _(
        "Raises the escalation level, for everybody to see. The process itself goes on as before."
    )
    icon = "escalated"
    on_many = True
    in_bulk = True
    rank = 80
    on_whole = True

    def effect(self, press: Press) -> None:
        change = ProcessChange(press.process, press.cause, press.now)
        who, why = str(press.request.actor), press.request.reason
        change.escalate(f"{who}: {why}" if why else who)
        change.write()


escalate = register(EscalateProcess())
