"""The one way to change a process.

Whatever moves a process (event, step, deadline, failure, operator) collects its writes in a change while the process's
row is locked; they go out in one message with the revision as a second net, and are announced after the commit. What
process managers and workflows add to it is in `manager` and `workflow`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from orchestrator.conf import conf
from orchestrator.definition.codec import digest
from orchestrator.engine.change import incidents, offering, pausing
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.status import TROUBLED, status_of
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.alike import together
from orchestrator.engine.storage.batch import Batch, Statement, send
from orchestrator.engine.storage.tables import (
    checkpoints,
    instances,
    step_runs,
)
from orchestrator.exceptions import LimitReached
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    Incident,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Work,
)
from orchestrator.notice_settings import Topic
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import pack_text, storable_text


class ProcessChange:
    """One change of one locked process. By itself it moves no step: it shows how the process stands.

    Args:
        instance: the locked row, or a new one that is not stored yet.
        cause: what moves it, unique within the process.
        now: the database's time, for everything this change writes.
    """

    def __init__(self, instance: ProcessInstance, cause: Cause, now: datetime) -> None:
        self.instance = instance
        self.cause = cause
        self.now = now
        self.new = instance.revision == 0
        self.revision = instance.revision + 1
        self.edge = ""
        self.steps: dict[str, str] = {}
        """The steps it touches and how they stand after it, for the checkpoint and for live pages."""
        self.marks: list[Statement] = []
        self.writes: list[Statement] = []
        self.rings: set[str] = set()
        """The queues that get work which this worker does not go on with itself."""
        self.also: dict[str, Any] = {}
        """Further columns of the process that it changes."""
        self.was = instance.status
        self.alone = False
        """Whether the process is written without having been locked, and a workflow has nothing else open."""
        self.failed = False
        """Whether something of it has failed for good just now."""
        self._offered: list[Statement] = []
        self._topics: list[Topic] = []
        self._recipients: list[str] = []
        self._why = self._where = ""

    @property
    def troubled(self) -> bool:
        """Whether the process was in trouble before it."""
        return self.was in TROUBLED

    @property
    def may_have_failed(self) -> bool:
        """Whether something of the process may have failed before it, or while it stood still."""
        return self.troubled or self.was == Status.PAUSED

    def mark(self, *statements: Statement) -> None:
        """Adds what settles the cause itself, under its fence; it is sent before everything else."""
        self.marks += statements

    def escalate(self, why: str = "") -> None:
        """Raises the escalation level, for people to see."""
        self.instance.escalation_level += 1
        self.instance.escalated_at = self.now
        self.tell(Topic.ESCALATION)
        self._why = why

    def tell(self, topic: Topic, step: str = "") -> None:
        """Has people told of it.

        Args:
            topic: what it is.
            step: where; the process's current step when empty.
        """
        self._topics.append(topic)
        self._where = self._where or step

    def notify(self, recipients: Iterable[str]) -> None:
        """Has these told of it, whatever else they want to be told of.

        Args:
            recipients: the names that the settings give them.
        """
        self._recipients += recipients

    @property
    def told(self) -> list[Statement]:
        """What people are told of it: a part of its writes."""
        return incidents.told(
            self._topics,
            self.now,
            process=self.instance,
            step=self._where,
            message=storable_text(self._why)[:500],
            text=pack_text(self._why),
            recipients=self._recipients,
        )

    def pin(self, definition: int) -> None:
        """Lets the process go on with another stored definition, given by its key."""
        self.instance.definition_id = self.also["definition_id"] = definition

    def pause(self) -> None:
        """Lets the process stand still from now on."""
        self.instance.paused_at = self.also["paused_at"] = self.now

    def go_on(self) -> None:
        """Lets a process that stands still go on with what was left."""
        if self.instance.paused_at is not None:
            self.instance.paused_at = self.also["paused_at"] = None
            self.rings |= pausing.wake(self.instance.pk, self.now)

    @property
    def paused(self) -> bool:
        """Whether the process stands still after it."""
        return self.instance.paused_at is not None

    def write(self) -> None:
        """Sends everything in one message and has the change announced after the commit.

        Raises:
            LeaseLost: somebody else moved the process or settled the cause; roll back.
        """
        self.send(Batch(together(self.prepared())))
        self.written()

    def prepared(self) -> list[Statement]:
        """All its writes, in the order in which they are sent."""
        self.settle_status()
        if self.instance.finished_at is not None:
            self.go_on()
        if self.instance.status == Status.CANCELLED and self.may_have_failed:
            self.mark(self._events_matter_no_more())
        if self.paused:
            self.instance.status = Status.PAUSED
        elif self.instance.parent_id is not None:
            self._tell_parent()
        self._check_limit()
        # The process first, as everybody locks it: whoever has not locked it yet must not hold one of its rows.
        rows = [self._instance(), *self.marks, *self.writes, self._checkpoint()]
        self._offered = self._offered_again()
        return [*rows, *self.told, *self._offered]

    def written(self) -> None:
        """What follows when its writes were sent."""
        if self.paused:
            pausing.rest(self.instance.pk, self.now)
        self.instance.revision = self.revision
        announce(self.instance, self.steps or {self.instance.step: ""}, self.edge)
        for queue in self.rings:
            wake_queue_after_commit(queue, others=True)
        if self._offered:
            offering.wake_queue_of(self.instance)

    # What managers and workflows do in their own way

    def settle_status(self) -> None:
        """Works out how the process stands now."""
        if self.may_have_failed and self.instance.finished_at is None:
            self.look_again()

    def columns(self) -> dict[str, Any]:
        """The columns of the process that may have changed, beside those that every change writes."""
        return {}

    def awaited(self) -> offering.Types:
        """The types of events that the process may take after it."""
        return offering.awaited(self.instance)

    def known(self) -> dict[str, Any]:
        """What the stored process must still say."""
        known = {"id": self.instance.pk, "revision": self.revision - 1}
        if self.alone:  # an event may have been parked, which is no revision
            known["parked"] = self.instance.parked
        return known

    def shown(self) -> tuple[list[str], Any]:
        """What the checkpoint says of the steps and of the data."""
        steps = [self.instance.step] if self.instance.step else []
        # Of a workflow it is the input, which the first checkpoint has.
        return steps, {} if definitions.is_workflow(
            self.instance
        ) else self.instance.data

    def send(self, batch: Batch) -> None:
        """Sends the writes, in the running transaction."""
        batch.send()

    # What all share

    def look_again(self) -> None:
        """Works the status out from what is stored; what is settled now no longer counts as trouble."""
        self.flush()
        self.instance.status = status_of(self.instance, troubled=self.may_have_failed)

    def flush(self) -> None:
        """Sends what was collected so far, in the running transaction, so that what follows is decided on it."""
        send([*self.marks, *self.writes])
        self.marks, self.writes = [], []

    def _tell_parent(self) -> None:
        """Has the step look that runs this process: it has ended or failed, or fails no more."""
        now = self.instance.status
        over = self.instance.finished_at is not None
        waiting = StepRun.objects.filter(child=self.instance.pk, finished_at=None)
        if not (over or self.failed or now == Status.FAILED != self.was):
            if now == self.was or self.was not in (Status.FAILED, Status.PAUSED):
                return
            waiting = waiting.filter(status=StepStatus.FAILED)
        for run in waiting:
            awake = {"wake_at": self.now, "remaining": None}
            still = {"id": run.pk, "finished_at": None}
            self.writes.append(step_runs.update(awake, still, None))
            self.rings.add(run.queue)

    def _events_matter_no_more(self) -> Statement:
        """Resolves what people were told of events that could not be delivered: a process that is cancelled needs none.

        One that has completed without them leaves it open: nobody has decided that they were not wanted.
        """
        about = {"kind": Incident.Kind.EVENT_FAILED, "instance_id": self.instance.pk}
        return incidents.resolved(incidents.CANCELLED, self.now, **about)

    def _check_limit(self) -> None:
        """Stops a process that goes round for ever; it may still be shown to have failed, be undone, and end."""
        if self.instance.status == Status.FAILED or self._comes_to_its_end():
            return
        limit = conf().TRANSITIONS_LIMIT
        if self.revision > limit:
            raise LimitReached(
                "the process has made %(number)s transitions, the most it may (PROCESSION TRANSITIONS_LIMIT)",
                f"{limit:,}",
            )

    def _comes_to_its_end(self) -> bool:
        """Whether nothing can follow from this that goes round."""
        return self.instance.finished_at is not None

    def _instance(self) -> Statement:
        instance = self.instance
        if self.new:
            instance.changed_at, instance.revision = self.now, self.revision
            return instances.insert(instance)
        changed = {
            "status": instance.status,
            "step": instance.step,
            **self.columns(),
            **self.also,
            "revision": self.revision,
            "parked": instance.parked,
            "escalation_level": instance.escalation_level,
            "escalated_at": instance.escalated_at,
            "changed_at": self.now,
            "finished_at": instance.finished_at,
        }
        return instances.update(changed, self.known())

    def _checkpoint(self) -> Statement:
        steps, data = self.shown()
        row = Checkpoint(
            instance_id=self.instance.pk,
            revision=self.revision,
            cause=str(self.cause),
            edge=self.edge,
            steps=steps,
            status=self.instance.status,
            data=data,
            checksum=digest(data),
            at=self.now,
        )
        return checkpoints.insert(row)

    def _offered_again(self) -> list[Statement]:
        """Offers the oldest parked event that the process may take now; at its end all, a few at a time."""
        pk, now = self.instance.pk, self.now
        if self.paused or not self.instance.parked:
            return []
        if self.instance.finished_at is not None:
            return [offering.left_over(pk, offering.ENDED, now)]
        return offering.oldest(pk, self.awaited(), now)


def is_by_itself(instance: ProcessInstance) -> bool:
    """Whether a change of the process concerns nothing but itself."""
    return (
        instance.finished_at is None
        and instance.paused_at is None
        and instance.parent_id is None
        and not instance.parked
    )


def settle_unmoved(
    process: ProcessInstance | None,
    cause: CauseKind,
    work: Work,
    marks: Sequence[Statement],
    now: datetime,
) -> None:
    """Settles work that moves nothing; a process that was in trouble over it shows how it stands without it.

    Args:
        process: the locked process; None where it cannot have been in trouble over that.
        cause: what settles the work.
        work: an event, a command or a deadline.
        marks: its writes.
        now: the database's time.
    """
    if process is None or process.finished_at or process.status not in TROUBLED:
        send(marks)
        return
    change = ProcessChange(process, Cause.of(cause, work.pk, process.revision), now)
    change.mark(*marks)
    change.write()
