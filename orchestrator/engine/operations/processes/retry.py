"""Retry: tries failed work again at once, and work that waits for another attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.workflows import retrying, retrying_together
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.processes.outcomes import retry_outcomes
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import Text


class RetryProcess(ProcessOperation):
    """Tries the work of a process again that has failed, or waits for another attempt.

    The same commit tries failed sub-processes and failed parents again.
    """

    name = "retry"
    label = _("Retry")
    done = _("Trying again.")
    may = _("Can retry a process")
    text = _(
        "Tries again what failed, from the step where it failed. Effects outside the database are repeated with the "
        "same idempotency key."
    )
    icon = "retrying"
    on_many = True
    in_bulk = True
    rank = 90
    on_whole = True
    with_parents = True

    def why_not(self, process: Circumstances) -> str:
        if process.troubled:
            return ""
        if process.left_behind:
            return Text("Its parent went on")
        return Text("Nothing has failed")

    outcomes = staticmethod(retry_outcomes)

    def together(
        self, presses: Sequence[Press], *given: Any
    ) -> Sequence[ProcessChange]:
        if not presses:
            return ()
        wanted = [(press.process, press.cause) for press in presses]
        return retrying_together.group_retries(wanted, presses[0].now)

    def effect(self, press: Press) -> None:
        instance = press.process
        if definitions.runs_workflow(instance):
            change = WorkflowChange.of(instance, press.cause, press.now)
            retrying.try_steps_again(change)
            moved: ProcessChange = change
        else:
            moved = ProcessChange(instance, press.cause, press.now)
            retrying.try_commands_again(moved)
        retrying.try_events_again(moved)
        moved.write()
        retrying.try_parents_again(instance, press.cause, press.now)
        wake_workers(instance)


retry = register(RetryProcess())


def wake_workers(instance: ProcessInstance) -> None:
    """Wake the workers of all queues of a process after the commit."""
    for rows in (instance.commands, instance.events, instance.step_runs):
        for queue in rows.values_list("queue", flat=True).distinct():
            wake_queue_after_commit(queue)
