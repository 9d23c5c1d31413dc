"""Pause and its reverse: a process stands still, and goes on with what was left."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Given, Press, ProcessOperation, register
from orchestrator.engine.operations.circumstances import (
    ENDED,
    UNDOING,
    Circumstances,
)
from orchestrator.engine.storage.tables import instances
from orchestrator.models import ProcessInstance


class PauseProcess(ProcessOperation):
    """Lets a process stand still: what is claimed finishes, nothing new starts, and no time passes for it.

    Deadlines, patience and pauses between attempts keep what was left of them. Events are parked; commands that were
    issued are carried out. It can still be cancelled.
    """

    name = "pause"
    label = _("Pause")
    done = _("Paused.")
    may = _("Can pause a process")
    text = _(
        "What runs comes to its end, nothing new starts, and no time passes for its deadlines until somebody resumes "
        "it. Events are kept."
    )
    icon = "paused"
    rank = 40
    given = (Given("children", "flag", _("Its sub-processes too"), lambda _: True),)
    on_whole = True
    on_many = True

    def concerns(self, process: Circumstances) -> bool:
        return not process.paused

    def why_not(self, process: Circumstances) -> str:
        if process.ended:
            return ENDED
        if process.undoing:
            return UNDOING
        return "It is paused already" if process.paused else ""

    def effect(self, press: Press, children: bool = True) -> dict[str, Any]:
        return {"paused_with_it": _stop(press.process, press, children)}


class UnpauseProcess(ProcessOperation):
    """Lets a paused process go on with what was left of its deadlines, patience and pauses."""

    name = "unpause"
    label = _("Resume")
    done = _("It goes on.")
    may = _("Can resume a paused process")
    text = _("The process goes on, with what was left of its deadlines.")
    icon = "running"
    rank = 40
    given = (Given("children", "flag", _("Its sub-processes too"), lambda _: True),)
    on_whole = True
    on_many = True

    def concerns(self, process: Circumstances) -> bool:
        return process.paused

    def why_not(self, process: Circumstances) -> str:
        if process.ended:
            return ENDED
        return "" if process.paused else "It is not paused"

    def effect(self, press: Press, children: bool = True) -> dict[str, Any]:
        return {"resumed_with_it": _go_on(press.process, press, children)}


def _stop(instance: ProcessInstance, press: Press, children: bool) -> int:
    """Pauses a locked process; how many sub-processes were paused with it."""
    change = ProcessChange(instance, press.cause, press.now)
    change.pause()
    change.write()
    if not children:
        return 0
    running = _children(instance, paused=False)
    return sum(1 + _stop(child, press, children) for child in running)


def _go_on(instance: ProcessInstance, press: Press, children: bool) -> int:
    change = ProcessChange(instance, press.cause, press.now)
    change.go_on()
    change.write()
    if not children:
        return 0
    resting = _children(instance, paused=True)
    return sum(1 + _go_on(child, press, children) for child in resting)


def _children(instance: ProcessInstance, *, paused: bool) -> list[ProcessInstance]:
    """The live sub-processes of a process, locked, in the order in which all lock them."""
    keys = instance.children.live().order_by("pk").values_list("pk", flat=True)
    locked = [instances.lock(pk)[0] for pk in keys]
    return [
        child
        for child in locked
        if child is not None
        and child.finished_at is None
        and (child.paused_at is not None) == paused
    ]


pause = register(PauseProcess())
unpause = register(UnpauseProcess())
