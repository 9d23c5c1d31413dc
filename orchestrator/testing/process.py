"""A process in a test: operations and state. Each property reads the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, overload
from uuid import UUID, uuid4

from django.contrib.auth.models import AnonymousUser

from orchestrator.definition import Command, Event, ProcessManager, Workflow
from orchestrator.definition.codec import decode
from orchestrator.definition.declarations.message_forms import decode_message
from orchestrator.definition.messages import renamed
from orchestrator.engine import operations
from orchestrator.engine.processes import events, starts
from orchestrator.engine.steps import subprocesses
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import Results
from orchestrator.models import (
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    in_issue_order,
)
from orchestrator.queue import suppress_all_wakes
from orchestrator.registry import DefinitionClass
from orchestrator.testing import clock

UNSEEN = (StepStatus.NOT_TAKEN, StepStatus.SUPERSEDED)
"""The statuses of visits that never ran or were superseded."""


@overload
def started(
    definition: type[ProcessManager],
    given: Event,
    *,
    id: str = "",
    correlation_key: str = "",
) -> Process: ...


@overload
def started(
    definition: type[Workflow],
    given: object = None,
    *,
    id: str = "",
    correlation_key: str = "",
) -> Process: ...


def started(
    definition: DefinitionClass,
    given: Any = None,
    *,
    id: str = "",
    correlation_key: str = "",
) -> Process:
    """Start a process and run it as far as it goes without waiting.

    Args:
        definition: the process manager or workflow.
        given: a starting event of a process manager, or the input of a workflow; None for a workflow without `Input`.
        id: the id of the event or the start; by default a new one.
        correlation_key: the business key; by default that of the event or input.

    Raises:
        InvalidMessage, KeyTaken: as in `start_process`.
        AssertionError: the event did not start the process.
    """
    with suppress_all_wakes():
        receipt = starts.start_process(
            definition.name,
            given,
            id=id,
            source="test",
            correlation_key=correlation_key,
        )
    clock.run()
    process = Process(receipt.process_id)
    if not ProcessInstance.objects.filter(pk=process.id).exists():
        row = InboxEvent.objects.get(pk=receipt.number)
        (*_, said) = ["no reason is known", *row.error.strip().splitlines()]
        raise AssertionError(
            f"{row.type} started no {definition.name}, it is {row.verdict}: {said}"
        )
    return process


def found(definition: DefinitionClass, key: str | None = None) -> Process:
    """Return the process that the code under test has started.

    Args:
        definition: the process manager or workflow.
        key: its correlation key, of the last of several processes. Without it there must be exactly one process.

    Raises:
        LookupError: there is none, or there are several.
    """
    rows = ProcessInstance.objects.filter(name=definition.name).newest_first()
    if key is not None:
        rows = rows.filter(correlation_key=key)[:1]
    ids = list(rows.values_list("pk", flat=True))
    if len(ids) != 1:
        named = "" if key is None else f" with the key {key!r}"
        number = "no process" if not ids else f"{len(ids)} processes"
        raise LookupError(f"there is {number} of {definition.name}{named}")
    return Process(ids[0])


@dataclass(frozen=True, repr=False)
class Process:
    """A handle on one process.

    Args:
        id: the process id, from a receipt for instance.
    """

    id: UUID

    # Operations

    def send(self, event: Event, *, id: str = "") -> str:
        """Send an event to the process and run due work; return the verdict, such as "moved" or "parked"."""
        with suppress_all_wakes():
            receipt = events.send_event(
                event, id=id or str(uuid4()), source="test", process_id=self.id
            )
        clock.run()
        return str(InboxEvent.objects.get(pk=receipt.number).verdict)

    def answer(self, step: str, choice: StrEnum | str, *, by: Any = None) -> None:
        """Decide in a step that asks, and run due work.

        Args:
            step: the name of the step.
            choice: one of its choices.
            by: the user whose permissions count; None for all permissions.

        Raises:
            LookupError: the step does not ask now.
            OperationRefused: the step has no such choice, or the user lacks the permission.
        """
        asking = self.instance.step_runs.filter(
            node=step, kind=StepKind.ASK, finished_at=None
        )
        run = asking.order_by("pk").first()
        if run is None:
            raise LookupError(f"{step} does not ask now: {self}")
        pk, value = run.pk, str(choice)
        self._act(by, lambda r: operations.decide(self.id, pk, value, request=r))

    def retry(self, *, by: Any = None) -> None:
        """Retry all failed work, as an operator does, and run it.

        Raises:
            OperationRefused: nothing has failed, or the user lacks the permission.
        """
        self._act(by, lambda request: operations.retry(self.id, request=request))

    def cancel(self, *, by: Any = None) -> None:
        """Cancel the process, as an operator does, and run the undo functions.

        Raises:
            OperationRefused: the process has ended, or the user lacks the permission.
        """
        self._act(by, lambda request: operations.cancel(self.id, request=request))

    def finish(self) -> Process:
        """Let time pass, through delays, retries and deadlines, until the process has ended.

        Raises:
            AssertionError: the process waits for an event or a person, or does not end.
        """
        clock.run()
        for _ in range(clock.MOST_MOMENTS):
            if self.instance.finished_at is not None:
                return self
            if not clock.pass_to_next_moment(self.id):
                raise AssertionError(f"nothing is due and it has not ended: {self}")
        raise AssertionError(f"it finds no end: {self}")

    def _act(
        self, by: Any, action: Callable[[operations.ActionRequest], object]
    ) -> None:
        actor = by or Anybody()
        with suppress_all_wakes():
            action(operations.ActionRequest(actor=actor, key=uuid4(), reason="a test"))
        clock.run()

    # State

    @property
    def status(self) -> str:
        """The status, such as "waiting", "retrying", "failed" or "completed"."""
        return str(self.instance.status)

    @property
    def path(self) -> list[str]:
        """The visited steps in the order in which the process left them, and then the current steps.

        An undone step is there again as "undo" and its name. A map is one step.
        """
        runs = self.instance.step_runs.filter(item=None).exclude(status__in=UNSEEN)
        seen = [run for run in runs if not _is_join_ahead(run)]
        seen.sort(key=lambda run: (run.left is None, run.left or 0, run.pk))
        return [_name(run) for run in seen]

    @property
    def open_steps(self) -> list[str]:
        """The current steps; empty after the end."""
        runs = self.instance.step_runs.filter(finished_at=None, item=None)
        open_runs = runs.order_by("pk")
        return [_name(run) for run in open_runs if not _is_join_ahead(run)]

    @property
    def data(self) -> Any:
        """A process manager's data, or the input of a workflow."""
        instance, definition = self.instance, self._definition
        form = definition.Input if issubclass(definition, Workflow) else definition.Data
        return decode(form, instance.data)

    @property
    def commands(self) -> list[Command]:
        """The issued commands in order, carried out or not."""
        definition = self._definition
        if not issubclass(definition, ProcessManager):
            return []
        classes = definition.issued_commands()
        issued = in_issue_order(self.instance.commands.all())
        former = {old: classes[new] for old, new in renamed.items() if new in classes}
        forms = former | classes
        return [decode_message(forms[row.type], row.body) for row in issued]

    @property
    def result(self) -> Any:
        """The result of a workflow: that of its last step, or a dict of several; None before the end."""
        definition = self._definition
        if not issubclass(definition, Workflow):
            return None
        body = subprocesses.child_result(self.instance)
        return None if body is None else decode(definition.result_type(), body)

    def result_of(self, step: str) -> Any:
        """Return the result of the last visit of a workflow's step; of a map, the list of its elements' results.

        Raises:
            LookupError: the step has no result.
        """
        instance = self.instance
        results = Results(instance, definitions.plan_of(instance))
        if step not in results.plan.vertices or not results.results([step]):
            raise LookupError(f"{step} has no result: {self}")
        return results.result(step)

    @property
    def incidents(self) -> list[str]:
        """The messages of open incidents, the oldest first."""
        rows = self.instance.incidents.filter(resolved_at=None).order_by("pk")
        return [str(row.message) for row in rows]

    @property
    def children(self) -> list[Process]:
        """Its sub-processes, the oldest first."""
        rows = ProcessInstance.objects.filter(parent=self.id).newest_first().reverse()
        return [Process(pk) for pk in rows.values_list("pk", flat=True)]

    @property
    def instance(self) -> ProcessInstance:
        """Its present row."""
        return ProcessInstance.objects.get(pk=self.id)

    @property
    def _definition(self) -> DefinitionClass:
        return definitions.definition_of(self.instance)

    def __repr__(self) -> str:
        instance = ProcessInstance.objects.filter(pk=self.id).first()
        if instance is None:
            return f"<no process {self.id}>"
        where = ", ".join(self.open_steps) or "no step"
        trouble = "".join(f"; {message}" for message in self.incidents)
        return f"<{instance.name} {instance}: {instance.status} in {where}{trouble}>"


class Anybody(AnonymousUser):
    """The default actor of a test, with every permission."""

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return True

    def __str__(self) -> str:
        return "a test"


def _is_join_ahead(run: StepRun) -> bool:
    """Whether a visit is a join that has not started."""
    return run.kind == StepKind.JOIN


def _name(run: StepRun) -> str:
    return f"undo {run.node}" if run.kind == StepKind.UNDO else run.node
