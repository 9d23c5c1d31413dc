"""Pause and resume a process; deadlines keep the time that is left of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import (
    Circumstances,
    ProcessFacts,
    ProcessOperation,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.tables import instances
from orchestrator.models import ProcessInstance
from orchestrator.text import Text

CHILDREN = Given(
    "children",
    "flag",
    _("Its sub-processes too"),
    lambda instance: True,
    of_workflows=True,
)


class PauseProcess(ProcessOperation):
    """Pauses a process: workers finish claimed work and start no other, and no time passes for the process.

    Deadlines, patience and pauses between attempts keep the time that is left of them. The inbox parks events, and
    workers carry out issued commands. An operator can still cancel the process.
    """

    name = "pause"
    label = _("Pause")
    done = _("Paused.")
    may = _("Can pause a process")
    text = _(
        "Its deadlines, the patience of its events and its pauses between attempts stand still, and go on with what is "
        "left of them when somebody resumes it. What a worker has begun comes to its end, within its time limit; "
        "nothing new starts. Events are kept; commands that were issued are carried out."
    )
    icon = "paused"
    rank = 40
    given = (CHILDREN,)
    on_whole = True
    on_many = True
    while_undoing = False

    def concerns(self, process: Circumstances) -> bool:
        return not process.paused

    def obstacle(self, process: Circumstances) -> str:
        return Text("It is paused already") if process.paused else ""

    def effect(self, press: Press, children: bool = True) -> dict[str, Any]:
        parts = _change_each(self, press, children, ProcessChange.pause)
        return {"paused_with_it": parts}


class UnpauseProcess(ProcessOperation):
    """Resumes a paused process with the time that is left of its deadlines, patience and pauses."""

    name = "unpause"
    label = _("Resume")
    done = _("It goes on.")
    may = _("Can resume a paused process")
    text = _("The process goes on, with what was left of its deadlines.")
    icon = "running"
    rank = 40
    given = (CHILDREN,)
    on_whole = True
    on_many = True

    def concerns(self, process: Circumstances) -> bool:
        return process.paused

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.paused else Text("It is not paused")

    def effect(self, press: Press, children: bool = True) -> dict[str, Any]:
        parts = _change_each(self, press, children, ProcessChange.go_on)
        return {"resumed_with_it": parts}


def _change_each(
    operation: ProcessOperation,
    press: Press,
    children: bool,
    what: Callable[[ProcessChange], None],
) -> int:
    """Changes the process, and its sub-processes that allow the action; returns the number of the latter."""
    parts = ProcessFacts(_descendants(press.process) if children else []).each()
    able = [part.instance for part in parts if not operation.why_not(part)]
    for instance in (press.process, *able):
        change = ProcessChange(instance, press.cause, press.now)
        what(change)
        change.write()
    return len(able)


def _descendants(instance: ProcessInstance) -> list[ProcessInstance]:
    """The live sub-processes of a process on all levels, locked in the usual order: parents first."""
    found: list[ProcessInstance] = []
    level = [instance]
    while level:
        parts = ProcessInstance.objects.live().filter(parent__in=level).order_by("pk")
        locked = [instances.lock(pk)[0] for pk in parts.values_list("pk", flat=True)]
        level = [part for part in locked if part and part.finished_at is None]
        found += level
    return found


pause = register(PauseProcess())
unpause = register(UnpauseProcess())
