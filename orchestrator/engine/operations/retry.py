"""Retry: what has failed, or waits for another attempt, is tried again at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change import retrying, retrying_together
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations import outcomes
from orchestrator.engine.operations.base import Press, ProcessOperation, Tried
from orchestrator.engine.operations.circumstances import Circumstances
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import Text


class RetryProcess(ProcessOperation):
    """Tries again now whatever failed, or waits for another attempt, in a process.

    What has failed with it is tried again in the same commit: its sub-processes, and what it is a part of itself.
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

    def outcomes(self, tried: Sequence[Tried]) -> dict[Any, str | None]:
        return outcomes.of_retries(tried)

    def together(
        self, presses: Sequence[Press], *given: Any
    ) -> Sequence[ProcessChange]:
        if not presses:
            return ()
        wanted = [(press.process, press.cause) for press in presses]
        return retrying_together.retries(wanted, presses[0].now)

    def effect(self, press: Press) -> None:
        instance = press.process
        if definitions.is_workflow(instance):
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
    """Wakes the workers of all queues on which a process has work, once the transaction is committed."""
    for rows in (instance.commands, instance.events, instance.step_runs):
        for queue in rows.values_list("queue", flat=True).distinct():
            wake_queue_after_commit(queue)
