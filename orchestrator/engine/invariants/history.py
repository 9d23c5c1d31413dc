"""Invariants of checkpoints and of the state of processes: a replay of the history gives what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db.models import Count, F, Max, Min, QuerySet

from orchestrator import registry
from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode, digest, encode
from orchestrator.definition.declarations.message_forms import current_form
from orchestrator.definition.workflow.replay import Replay
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.invariants.messages.issued_commands import MOST, IssuedCommands
from orchestrator.engine.invariants.stored_sets import (
    WHOLE,
    ProcessSet,
    ReplayedHistory,
    StoredPart,
    is_unchanged,
)
from orchestrator.engine.storage import definitions, inbox
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
    Verdict,
)

ManagerClass = type[ProcessManager]
TAKEN_BACK = (StepStatus.CANCELLED, StepStatus.SUPERSEDED)


def dense_history(part: StoredPart = WHOLE) -> Iterator[str]:
    """I2: checkpoints run from 1 to the instance's revision without a gap."""
    yield from gaps_in_history(part.processes())


def gaps_in_history(some: QuerySet[ProcessInstance]) -> Iterator[str]:
    """Yield the processes whose checkpoints do not run from 1 to their revision."""
    spans = some.annotate(
        low=Min("checkpoints__revision"),
        high=Max("checkpoints__revision"),
        count=Count("checkpoints"),
    )
    broken = spans.exclude(low=1, high=F("revision"), count=F("revision"))
    for instance in broken[:MOST]:
        yield f"{instance.pk} is at revision {instance.revision} but has {instance.count} checkpoints"


def model(some: ProcessSet) -> Iterator[str]:
    """I3: the stored state is what the definition makes of the history."""
    for instance in some.processes:
        try:
            definition = definitions.definition_of(instance)
            if issubclass(definition, ProcessManager):
                replay = ManagerReplay(definition, instance, some)
                yield from replay.findings(some.checkpoints[instance.pk])
            else:
                for finding in islice(_workflow(instance, some), MOST):
                    yield f"{instance.pk}: {finding}"
        except ProcessionError as error:
            yield f"{instance.pk}: {error}"
        except Exception as error:  # noqa: BLE001  # the application's functions may raise anything
            secret_values.attach_process(error, instance)
            yield f"{instance.pk}: its history cannot be told again: {named_error(error)}"


def joins(some: ProcessSet) -> Iterator[str]:
    """I5: a join counts the resolved branches and the taken branches."""
    for instance in some.processes:
        if not instance.definition.is_workflow:
            continue
        try:
            plan = definitions.plan_of(instance)
        except Exception:  # noqa: BLE001, S112  # the running code has no plan for it: `model` reports it
            continue
        if all(vertex.ways_in < 2 for vertex in plan.vertices.values()):
            continue  # it has no join
        replayed = some.replay_of(instance)
        if not replayed.error and not replayed.replay.stray:
            for finding in islice(_joins(replayed.history, replayed.replay), MOST):
                yield f"{instance.pk}: {finding}"


# Process managers


class ManagerReplay:
    """The history of a process manager's process, decided again checkpoint by checkpoint.

    Args:
        definition: the version that the process is on now.
        instance: the process.
        some: the set with its rows.
    """

    def __init__(
        self, definition: ManagerClass, instance: ProcessInstance, some: ProcessSet
    ) -> None:
        self.definition, self.instance, pk = definition, instance, instance.pk
        self.switches, self.repairs = some.switches[pk], some.repairs[pk]
        # If the running code lacks the first version, the first step is that of the present version.
        first = _version_at(0, definition, self.switches) or definition
        self.step: Any = first.first
        self.data: Any = None
        self.events = {event.pk: event for event in some.events[pk]}
        ignored = (e for e in some.events[pk] if e.verdict == Verdict.IGNORED)
        self.ignored = {event.pk: event for event in ignored}
        """The events that are ignored, without those that the process ignores in one of its states."""
        unchanged = not self.switches and is_unchanged(definition, instance)
        if not unchanged:
            self.ignored = {}
        self.issued = IssuedCommands(pk, some.commands[pk], in_order=unchanged)

    def findings(self, checkpoints: Iterable[Checkpoint]) -> Iterator[str]:
        """Yield what differs from the stored rows; nothing after the first wrong checkpoint."""
        for checkpoint in checkpoints:
            if digest(checkpoint.data) != checkpoint.checksum:
                yield f"{self._at(checkpoint)} does not match its checksum"
            version = _version_at(checkpoint.revision, self.definition, self.switches)
            if version is None:
                self.issued.unread(checkpoint.revision)
                continue
            decision, wrong = self._decide_again(version, checkpoint)
            yield from self.issued.compared(checkpoint.revision, decision)
            if wrong:
                yield f"{self._at(checkpoint)} {wrong}"
                return
        if not self._is_at_end():
            yield f"{self.instance.pk} is not where its history ends"
        yield from self.issued.left_over()
        for event in islice(self.ignored.values(), MOST):
            yield f"event {event.pk} is ignored, but no step of {self.instance.pk} has ignored {event.type}"

    def _at(self, checkpoint: Checkpoint) -> str:
        return f"checkpoint {checkpoint.revision} of {self.instance.pk}"

    def _decide_again(
        self, version: ManagerClass, checkpoint: Checkpoint
    ) -> tuple[Decision | None, str]:
        """Follow a checkpoint; return the decision on its cause, and what is wrong with it, or ""."""
        cause = checkpoint.moved_by
        repaired = _repaired(version, cause, self.repairs)
        self.step, self.data = repaired or (self.step, self.data)
        try:
            decision = self._decided(version, checkpoint, cause)
        except KeyError as missing:
            return None, f"names event {missing}, which is not there"
        if decision is not None:
            self.step, self.data = decision.step, decision.data
        self._ignores(version)
        if not _differs(checkpoint, cause, self.step, self.data):
            return decision, ""
        return decision, f"is not what follows from its cause ({checkpoint.said})"

    def _ignores(self, version: ManagerClass) -> None:
        """Leave out the events that the process ignores in its state. If the code cannot tell, it may ignore them."""
        if self.data is None:
            return
        for pk, event in list(self.ignored.items()):
            try:
                message = inbox.parse_event(event.type, event.body)
                outcome = version.decide(self.step, self.data, message).outcome
            except BaseException:  # noqa: BLE001  # predicates may raise anything
                outcome = "ignored"
            if outcome == "ignored":
                del self.ignored[pk]

    def _decided(
        self, version: ManagerClass, checkpoint: Checkpoint, cause: Cause | None
    ) -> Decision | None:
        """The decision on the cause of a checkpoint; None for a cause without one.

        Raises:
            KeyError: the cause is an event that is missing.
        """
        step, data = self.step, self.data
        if cause is None or cause.kind not in (CauseKind.EVENT, CauseKind.DEADLINE):
            return None
        if cause.kind == CauseKind.DEADLINE:
            known = _known(version, checkpoint)
            return version.decide_deadline(step, data, int(cause.part), known=known)
        event = self.events[int(cause.ref)]
        happened = inbox.parse_event(event.type, event.body)
        return version.decide(step, data, happened, known=_known(version, checkpoint))

    def _is_at_end(self) -> bool:
        """Whether the process is in the step and with the data with which its history ends."""
        if self.data is None or self.instance.step != str(self.step):
            return False
        return bool(decode(self.definition.Data, self.instance.data) == self.data)


def _differs(checkpoint: Checkpoint, cause: Cause | None, step: Any, data: Any) -> bool:
    """Return whether a checkpoint has another step or other data."""
    if cause is None or data is None:
        return True
    if checkpoint.steps != [str(step)]:
        return True
    written, form = encode(data), type(data)
    stored = checkpoint.data
    return bool(stored != written and current_form(form, stored) != written)


def _version_at(
    revision: int, last: ManagerClass, switches: Sequence[Switch]
) -> ManagerClass | None:
    """Return the version of a process at a revision; None if the running code lacks it or has changed it.

    Args:
        revision: the revision of the process.
        last: the version that the process is on now.
        switches: its migrations, the first one first.
    """
    later = next((one for one in switches if one.revision > revision), None)
    if later is None:
        return last
    found = registry.definitions.get((last.name, later.version))
    if found is None or not issubclass(found, ProcessManager):
        return None
    return found if found.graph().fingerprint() == later.fingerprint else None


def _repaired(
    definition: ManagerClass,
    cause: Cause | None,
    repairs: Mapping[str, Mapping[str, Any]],
) -> tuple[Any, Any] | None:
    """Return the step and data after a repair or a migration, from the audit; None for any other transition."""
    after = repairs.get(cause.ref) if cause is not None else None
    if after is None:
        return None
    return definition.Step(after["step"]), decode(definition.Data, after["data"])


def _has_computed_fields(definition: ManagerClass) -> bool:
    return any(row.computes for row in definition.all_rows())


_computes: Callable[[Any], bool] = lru_cache(maxsize=1_000)(_has_computed_fields)
"""Whether a definition has computed fields."""


def _known(definition: ManagerClass, checkpoint: Checkpoint) -> Any:
    """Return the stored data for computed fields; None if there are none or the data cannot be read."""
    if not _computes(definition):
        return None
    try:
        return decode(definition.Data, checkpoint.data)
    except InvalidMessage:
        return None


# Workflows


def _workflow(instance: ProcessInstance, some: ProcessSet) -> Iterator[str]:
    """The findings in one workflow."""
    replayed = some.replay_of(instance)
    yield from _checkpoints(replayed.history, some.checkpoints[instance.pk])
    yield from _visits(replayed)


def _checkpoints(history: History, rows: Iterable[Checkpoint]) -> Iterator[str]:
    """Each checkpoint matches its checksum, and has settled the visit that it names."""
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


def _visits(replayed: ReplayedHistory) -> Iterator[str]:
    """The visits are those to which the settled visits lead.

    A corrupted result that decided on a branch was redone. The earlier result is unknown, so nothing is compared.
    """
    for visit in replayed.replay.stray:
        run = replayed.history.visits[visit]
        yield f"{_named(run)} was settled, but nothing had started it"
    if replayed.error is None:
        yield from _starts(replayed.history, replayed.replay)
    elif not isinstance(replayed.error, CorruptInput):
        error = f"{type(replayed.error).__name__}: {replayed.error}"
        yield f"its history cannot be told again: {error}"


def _starts(history: History, replay: Replay) -> Iterator[str]:
    """Every started visit must have started, at its revision, and none is missing."""
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
            # A visit from before a migration need not have begun at the end of the same step.
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
    """A started visit is open in the replay if it is open in the database."""
    is_open = replay.open.get(run.node) == run.visit
    if run.finished_at is None and not is_open:
        yield f"{_named(run)} is open, but nothing waits for it any more"
    if run.status == StepStatus.CANCELLED and is_open:
        undone = history.undone_at <= history.instance.revision
        if not (history.instance.finished_at or undone or run.blocked):
            yield f"{_named(run)} was cancelled without a reason"


def _unstarted(run: Run, passed: set[str], replay: Replay) -> Iterator[str]:
    """A run without a start in the replay must be a waiting join, or on a branch that was not taken."""
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
            continue  # branches that came late to a started join may have run again
        if (run.arrived, run.taken) != (now.arrived, now.taken):
            yield (
                f"the join at {name} counts {run.arrived} arrived and {run.taken} taken, "
                f"but there were {now.arrived} and {now.taken}"
            )


def _named(run: Run) -> str:
    more = f", round {run.round}" if run.round > 1 else ""
    return f"{run.node} (visit {run.visit}{more})"
