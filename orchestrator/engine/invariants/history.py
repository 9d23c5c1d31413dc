"""What must hold of checkpoints and of where processes stand: what the pure definition makes of what has happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Max, Min, QuerySet

from orchestrator import registry
from orchestrator.definition import Command, Decision, ProcessManager
from orchestrator.definition.codec import decode, digest, encode
from orchestrator.definition.workflow.replay import Replay
from orchestrator.engine import inbox
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.invariants.reading import ProcessSet, Retold
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.settled_visits import History, Run
from orchestrator.engine.storage.switches import Switch
from orchestrator.exceptions import CorruptInput, InvalidMessage, ProcessionError
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    ProcessInstance,
    StepKind,
    StepStatus,
    command_id,
)

TAKEN_BACK = (StepStatus.CANCELLED, StepStatus.SUPERSEDED)
MOST = 20
"""How many findings of one kind, or of one process, are told."""


def dense_history(some: QuerySet[ProcessInstance] | None = None) -> Iterator[str]:
    """I2: checkpoints run from 1 to the instance's revision without a gap."""
    spans = (ProcessInstance.objects.all() if some is None else some).annotate(
        low=Min("checkpoints__revision"),
        high=Max("checkpoints__revision"),
        count=Count("checkpoints"),
    )
    broken = spans.exclude(low=1, high=F("revision"), count=F("revision"))
    for instance in broken[:MOST]:
        yield f"{instance.pk} is at revision {instance.revision} but has {instance.count} checkpoints"


def model(some: ProcessSet) -> Iterator[str]:
    """I3: the stored state is what the pure definition makes of what has happened, one by one."""
    for instance in some.processes:
        try:
            definition = definitions.definition_of(instance)
            if issubclass(definition, ProcessManager):
                yield from _decisions(definition, instance, some)
            else:
                for finding in islice(_workflow(instance, some), MOST):
                    yield f"{instance.pk}: {finding}"
        except ProcessionError as error:
            yield f"{instance.pk}: {error}"
        except Exception as error:  # noqa: BLE001  # what the application decides with may raise anything
            secret_values.attach_process(error, instance)
            yield f"{instance.pk}: its history cannot be told again: {named_error(error)}"


def joins(some: ProcessSet) -> Iterator[str]:
    """I5: a join counts exactly the branches that were resolved, and those of them that were taken."""
    for instance in some.processes:
        if not instance.definition.is_workflow:
            continue
        try:
            plan = definitions.plan_of(instance)
        except Exception:  # noqa: BLE001, S112  # the running code has none for it: `model` says so
            continue
        if all(vertex.ways_in < 2 for vertex in plan.vertices.values()):
            continue  # it has no join
        told = some.told(instance)
        if not told.error and not told.replay.stray:
            for finding in islice(_joins(told.history, told.replay), MOST):
                yield f"{instance.pk}: {finding}"


# Process managers


def _decisions(
    definition: type[ProcessManager], instance: ProcessInstance, some: ProcessSet
) -> Iterator[str]:
    switches = some.switches[instance.pk]
    # Where the running code no longer has the first version, it began as the present one begins.
    step: Any = (_version_at(0, definition, switches) or definition).first
    data = None
    events = {pk: (kind, body) for pk, kind, body in some.events[instance.pk]}
    repairs = some.repairs[instance.pk]
    issued = IssuedBy(instance.pk, some.commands[instance.pk])
    for checkpoint in some.checkpoints[instance.pk]:
        if digest(checkpoint.data) != checkpoint.checksum:
            yield f"checkpoint {checkpoint.revision} of {instance.pk} does not match its checksum"
        version = _version_at(checkpoint.revision, definition, switches)
        if version is None:
            issued.unread(checkpoint.revision)
            continue
        cause = checkpoint.moved_by
        step, data = _repaired(version, cause, repairs) or (step, data)
        try:
            decision = _decided(version, checkpoint, events, step, data)
        except KeyError as missing:
            yield f"checkpoint {checkpoint.revision} of {instance.pk} names event {missing}, which is not there"
            return
        if decision is not None:
            step, data = decision.step, decision.data
            yield from issued.compared(checkpoint.revision, decision.commands)
        if _differs(checkpoint, cause, step, data):
            said = f"is not what follows from its cause ({checkpoint.said})"
            yield f"checkpoint {checkpoint.revision} of {instance.pk} {said}"
            return
    if (
        data is None
        or instance.step != str(step)
        or decode(definition.Data, instance.data) != data
    ):
        yield f"{instance.pk} is not where its history ends"
    yield from issued.left_over()


def _decided(
    definition: type[ProcessManager],
    checkpoint: Checkpoint,
    events: Mapping[int, tuple[str, Any]],
    step: Any,
    data: Any,
) -> Decision | None:
    """What a definition decides on the cause of a checkpoint; None where there was nothing to decide.

    Raises:
        KeyError: it was an event, which is not there.
    """
    cause = checkpoint.moved_by
    if cause is None or cause.kind not in (CauseKind.EVENT, CauseKind.DEADLINE):
        return None
    if cause.kind == CauseKind.DEADLINE:
        known = _known(definition, checkpoint)
        return definition.decide_deadline(step, data, int(cause.part), known=known)
    happened = inbox.parse_event(*events[int(cause.ref)])
    return definition.decide(step, data, happened, known=_known(definition, checkpoint))


def _differs(checkpoint: Checkpoint, cause: Cause | None, step: Any, data: Any) -> bool:
    """Whether a checkpoint says another step or other data."""
    if cause is None or data is None:
        return True
    return bool(checkpoint.steps != [str(step)] or encode(data) != checkpoint.data)


def _version_at(
    revision: int, last: type[ProcessManager], switches: Sequence[Switch]
) -> type[ProcessManager] | None:
    """The version that a process was on at a revision; None where the running code does not have it as it was.

    Args:
        revision: of the process.
        last: the version that it is on now.
        switches: when it went over to others, the first time first.
    """
    later = next((one for one in switches if one.revision > revision), None)
    if later is None:
        return last
    found = registry.definitions.get((last.name, later.version))
    if found is None or not issubclass(found, ProcessManager):
        return None
    return found if found.graph().fingerprint() == later.fingerprint else None


def _repaired(
    definition: type[ProcessManager],
    cause: Cause | None,
    repairs: Mapping[str, Mapping[str, Any]],
) -> tuple[Any, Any] | None:
    """Where a repair or a migration has left a process, as the audit says; None for any other transition."""
    told = repairs.get(cause.ref) if cause is not None else None
    if told is None:
        return None
    return definition.Step(told["step"]), decode(definition.Data, told["data"])


class IssuedBy:
    """The stored commands of a process, as its transitions must have issued them."""

    def __init__(
        self, process_id: UUID, rows: Iterable[tuple[UUID, int, str, Any]]
    ) -> None:
        self.process_id = process_id
        self._stored = {pk: (revision, kind, body) for pk, revision, kind, body in rows}

    def compared(self, revision: int, commands: Iterable[Command]) -> Iterator[str]:
        """Commands that differ from what the transition to a revision issued."""
        for place, command in enumerate(commands):
            kind = type(command).__name__
            found = self._stored.pop(command_id(self.process_id, revision, place), None)
            if found is None:
                yield f"revision {revision} of {self.process_id} issued {kind}, which is not there"
            elif found != (revision, kind, encode(command)):
                yield f"{kind} of revision {revision} of {self.process_id} is not what was issued"

    def unread(self, revision: int) -> None:
        """Leaves out the commands of a transition whose definition is no longer in the code."""
        self._stored = {
            pk: row for pk, row in self._stored.items() if row[0] != revision
        }

    def left_over(self) -> Iterator[str]:
        """Commands that no transition issued."""
        for pk, (revision, kind, _) in islice(self._stored.items(), MOST):
            yield f"{kind} {pk} of revision {revision} of {self.process_id} was issued by no transition"


def _known(definition: type[ProcessManager], checkpoint: Checkpoint) -> Any:
    """The stored data, for what functions gave; None where there are none or it cannot be read."""
    if not any(row.computes for row in definition.all_rows()):
        return None
    try:
        return decode(definition.Data, checkpoint.data)
    except InvalidMessage:
        return None


# Workflows


def _workflow(instance: ProcessInstance, some: ProcessSet) -> Iterator[str]:
    """The findings in one workflow."""
    told = some.told(instance)
    yield from _checkpoints(told.history, some.checkpoints[instance.pk])
    yield from _visits(told)


def _checkpoints(history: History, rows: Iterable[Checkpoint]) -> Iterator[str]:
    """Each checkpoint is as it was written, and the visit that it says was settled was settled in it."""
    runs = {run.pk: run for run in history.runs}
    for row in rows:
        number = row.revision
        if digest(row.data) != row.checksum:
            yield f"checkpoint {number} does not match its checksum"
        given = number == 1 and not any(one.input for one in history.switches)
        if given and row.data != history.instance.data:
            yield "its input is not the one it started with"
        cause = row.moved_by
        if cause is None or cause.kind != CauseKind.STEP or cause.part:
            continue
        run = runs.get(int(cause.ref))
        if run is None:
            yield f"checkpoint {number} names step run {cause.ref}, which is not there"
        elif run.left != number and run.status not in TAKEN_BACK:
            yield f"checkpoint {number} says that step run {cause.ref} was settled, but that was at {run.left}"


def _visits(told: Retold) -> Iterator[str]:
    """The visits are those that what was settled must have led to.

    A result that decided on a way and was found to be bad was redone: what it was then is not known any more.
    """
    for visit in told.replay.stray:
        run = told.history.visits[visit]
        yield f"{_named(run)} was settled, but nothing had started it"
    if told.error is None:
        yield from _starts(told.history, told.replay)
    elif not isinstance(told.error, CorruptInput):
        error = f"{type(told.error).__name__}: {told.error}"
        yield f"its history cannot be told again: {error}"


def _starts(history: History, replay: Replay) -> Iterator[str]:
    """Every visit that has started is one that must have, at that revision; none is missing."""
    visits, passed = dict(history.visits), set(replay.not_taken)
    for visit, by in replay.entered.items():
        revision = history.visits[by].left if by is not None else 1
        run = visits.pop(visit, None)
        if run is None or run.kind == StepKind.JOIN:
            yield f"{visit[0]} (visit {visit[1]}) has not started, though revision {revision} leads to it"
        elif run.status == StepStatus.NOT_TAKEN:
            yield f"{_named(run)} was not taken, though revision {revision} leads to it"
        else:
            anew = run.entered in history.resumed_at
            # What began in another version need not have begun at the end of the same step.
            if (
                run.entered != revision
                and run.entered > history.switched_at
                and not anew
            ):
                yield f"{_named(run)} started at revision {run.entered}, not at {revision}"
            yield from _still_open(run, history, replay)
    for run in visits.values():
        yield from _unstarted(run, passed, replay)
    for name in replay.not_taken:
        if (name, 1) not in visits:
            yield f"{name} is on a branch that was not taken, but nothing says so"


def _still_open(run: Run, history: History, replay: Replay) -> Iterator[str]:
    """A visit that has started is as open as it was left."""
    is_open = replay.open.get(run.node) == run.visit
    if run.finished_at is None and not is_open:
        yield f"{_named(run)} is open, but nothing waits for it any more"
    if run.status == StepStatus.CANCELLED and is_open:
        undone = history.undone_at <= history.instance.revision
        if not (history.instance.finished_at or undone or run.blocked):
            yield f"{_named(run)} was cancelled without a reason"


def _unstarted(run: Run, passed: set[str], replay: Replay) -> Iterator[str]:
    """A run of a visit that must not have started: a join that waits, or a branch that was not taken."""
    if run.status == StepStatus.NOT_TAKEN:
        if run.node not in passed:
            yield f"{_named(run)} says that its branch was not taken, but nothing has decided that"
    elif run.kind != StepKind.JOIN:
        yield f"{_named(run)} has started, but nothing leads to it"
    elif run.node not in replay.joins:
        yield f"{_named(run)} waits for its branches, but none has arrived"


def _joins(history: History, replay: Replay) -> Iterator[str]:
    last = max(history.resumed_at, default=0)
    for name, now in replay.joins.items():
        run = history.visits.get((name, 1))
        if run is None or (run.left or last) < last:
            continue  # what came late to a join that had started was perhaps done again
        if (run.arrived, run.taken) != (now.arrived, now.taken):
            yield (
                f"the join at {name} counts {run.arrived} arrived and {run.taken} taken, "
                f"but there were {now.arrived} and {now.taken}"
            )


def _named(run: Run) -> str:
    more = f", round {run.round}" if run.round > 1 else ""
    return f"{run.node} (visit {run.visit}{more})"
