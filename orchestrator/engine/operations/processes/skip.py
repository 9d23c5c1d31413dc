"""Skip: gives a failing command up, or ends the failed step of many processes with a result from a person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change import incidents, manager
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.processes.outcomes import retry_outcomes
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.visits.skip import skip
from orchestrator.engine.sql.tables import commands
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    CommandStatus,
    IssuedCommand,
    Status,
    StepKind,
    StepStatus,
)
from orchestrator.text import Text


class SkipCommand(ProcessOperation):
    """Gives up a command that has failed or waits for another attempt; workers carry out the commands behind it."""

    name = "skip_command"
    label = _("Skip")
    done = _("Skipped.")
    may = _("Can skip a command")
    text = _(
        "Gives this command up: it is not carried out any more. The commands that wait for it go on."
    )
    given = (Given("command", "text"),)

    def concerns(self, process: Circumstances) -> bool:
        return not process.workflow

    def why_not(self, process: Circumstances) -> str:
        # Whether the command fails is asked with its row.
        return "" if self.concerns(process) else Text("No command has failed")

    def effect(self, press: Press, command: str) -> dict[str, Any]:
        row = find_skippable(press.process.commands, command)
        change = ProcessChange(press.process, press.cause, press.now)
        give_up_command(change, row)
        change.write()
        return {"skipped": row.type}


skip_command = register(SkipCommand())


def give_up_command(change: ProcessChange, row: IssuedCommand) -> None:
    """Give a command up, and release the commands that wait for it."""
    closed = {"wake_at": None, "owner": "", "finished_at": change.now}
    given_up = {"status": CommandStatus.SKIPPED, **closed}
    same = {"id": row.pk, "status": row.status}
    change.mark(commands.update(given_up, same), *manager.wake_next(row, change.now))
    by = Text("skipped by an operator")
    change.mark(incidents.resolve(by, change.now, command_id=row.pk))


def find_skippable(issued: Any, key: str) -> IssuedCommand:
    """Return a command that can be skipped.

    Raises:
        OperationRefused: the process has no such command, or the command does not fail.
    """
    try:
        row: IssuedCommand = issued.get(pk=UUID(str(key)))
    except (ValueError, IssuedCommand.DoesNotExist):
        raise OperationRefused("the process has no command %(key)s", key) from None
    if not row.is_failing:
        raise OperationRefused(
            "%(type)s is %(status)s: only what has failed can be skipped",
            row.type,
            row.status,
        )
    return row


NO_STEP = Text("No step of it has failed")
SEVERAL = Text("Several of its steps have failed: skip them one by one")


class SkipFailedStep(ProcessOperation):
    """Skips the one failed step of a workflow; a bulk operation gives many processes the same result.

    A process with several failed steps, or without one, refuses it: one result does not fit different steps.
    """

    name = "skip_failed"
    label = _("Skip the failed step")
    done = _("Skipped.")
    may = skip.may
    text = _(
        "Ends the step that failed with the result you give, and the process goes on with it. A result that is none of "
        "that step is refused; a process of which several steps have failed is left as it is."
    )
    given = (Given("json", "json", _("Result, as JSON"), lambda instance: None),)
    in_bulk = True
    of_workflows = True
    permitted_as = skip.codename

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.instance.status == Status.FAILED else NO_STEP

    outcomes = staticmethod(retry_outcomes)

    def effect(self, press: Press, result_json: Any) -> dict[str, Any] | None:
        rows = press.process.step_runs.filter(
            status=StepStatus.FAILED, finished_at=None
        )
        failed = list(rows.exclude(kind=StepKind.MAP).values_list("pk", flat=True)[:2])
        if len(failed) != 1:
            raise OperationRefused(SEVERAL if failed else NO_STEP)
        return skip.effect(press, failed[0], result_json)


skip_failed = register(SkipFailedStep())
