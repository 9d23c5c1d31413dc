"""Remind: somebody is told, by name, that a process waits for them."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations import Circumstances, Given, Press, ProcessOperation
from orchestrator.exceptions import OperationRefused
from orchestrator.text import Text


class RemindOfProcess(ProcessOperation):
    """Notes in the history that a person was reminded."""

    name = "remind"
    label = _("Remind")
    done = _("Reminded.")
    may = _("Can remind people of a process")
    text = _("Tells somebody that this process waits for them.")
    icon = "person"
    given = (Given("whom", "text", _("Whom")),)
    on_whole = True

    def why_not(self, process: Circumstances) -> str:
        ended = Text("The process has ended")
        return ended if process.ended else ""

    def effect(self, press: Press, whom: str) -> dict[str, Any]:
        if not whom.isalpha():
            raise OperationRefused("No person is called %(whom)s", repr(whom))
        ProcessChange(press.process, press.cause, press.now).write()
        return {"reminded": whom}
