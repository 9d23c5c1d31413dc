"""The one way to change a process.

Each cause (event, step, deadline, failure, operator) collects its writes in a change while the process's row is locked.
One message sends them, with the revision as a second fence, and a signal announces them after the commit. `manager` and
`workflows` add the parts of process managers and of workflows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from orchestrator.configuration.conf import conf
from orchestrator.configuration.notice_settings import Topic
from orchestrator.definition.codec import digest
from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.announcements import announce, announce_together
from orchestrator.engine.change.status import (
    TROUBLED,
    resume_work,
    status_of,
    suspend_work,
)
from orchestrator.engine.sql.batch import Batch, Statement, send
from orchestrator.engine.sql.group_commit import merge_alike
from orchestrator.engine.sql.row_objects import new_row
from orchestrator.engine.sql.tables import checkpoints, instances, step_runs
from orchestrator.engine.sql.tables import incidents as incident_rows
from orchestrator.engine.storage import definitions, inbox
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
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import pack_text, storable_text


class ProcessChange:
    """One change of one locked process. This class moves no step: it works out the status, and writes a checkpoint.

    Args:
        instance: the locked row, or a new one that is not stored yet.
        cause: the cause, unique within the process.
        now: the database's time, for all writes of this change.
    """

    def __init__(self, instance: ProcessInstance, cause: Cause, now: datetime) -> None:
        self.instance = instance
        self.cause = cause
        self.now = now
        self.new = instance.revision == 0
        self.revision = instance.revision + 1
        self.edge = ""
        self.steps: dict[str, str] = {}
        """The steps that it touches, with their new statuses, for the checkpoint and for live pages."""
        self.marks: list[Statement] = []
        self.writes: list[Statement] = []
        self.to_wake: set[str] = set()
        """The queues that get work for other workers."""
        self.extra: dict[str, Any] = {}
        """Further columns of the process that this change sets."""
        self.before = instance.status
        self.alone = False
        """Whether the process is written without a lock; a workflow has no other open visit then."""
        self.sent = False
        """Whether some of its writes were sent before it was written as a whole."""
        self.failed = False
        """Whether this change lets a step fail for good."""
        self.offers = True
        """Whether the process may take a parked event after this change that it did not take before."""
        self._offered: list[Statement] = []
        self._topics: list[Topic] = []
        self._recipients: list[str] = []
        self._why = self._where = ""

    @property
    def troubled(self) -> bool:
        """Whether the process was in trouble before this change."""
        return self.before in TROUBLED

    @property
    def may_have_failed(self) -> bool:
        """Whether work of the process may have failed before this change, or while the process was paused."""
        return self.troubled or self.before == Status.PAUSED

    def mark(self, *statements: Statement) -> None:
        """Add writes that settle the cause itself, under its fence; they are sent before all others."""
        self.marks += statements

    def escalate(self, why: str = "") -> None:
        """Raise the escalation level, and tell people."""
        self.instance.escalation_level += 1
        self.instance.escalated_at = self.now
        self.tell(Topic.ESCALATION)
        self._why = why

    def tell(self, topic: Topic, step: str = "") -> None:
        """Tell people of this change.

        Args:
            topic: the topic of the notice.
            step: the step; the process's current step when empty.
        """
        self._topics.append(topic)
        self._where = self._where or step

    def notify(self, recipients: Iterable[str]) -> None:
        """Tell these recipients of this change, whatever topics they subscribe to.

        Args:
            recipients: their names in the settings.
        """
        self._recipients += recipients

    @property
    def notices(self) -> list[Statement]:
        """The writes that tell people of this change."""
        return incidents.note_occurrence(
            self._topics,
            self.now,
            process=self.instance,
            step=self._where,
            message=storable_text(self._why)[:500],
            text=pack_text(self._why),
            recipients=self._recipients,
        )

    def pin(self, definition: int) -> None:
        """Pin the process, its visits and its incidents to another stored definition, given by its key."""
        self.instance.definition_id = self.extra["definition_id"] = definition
        theirs, also = (
            {"instance_id": self.instance.pk},
            {"stored_definition_id": definition},
        )
        self.writes.append(step_runs.update(also, {**theirs, "item": None}, None))
        self.writes.append(incident_rows.update(also, theirs, None))

    def pause(self) -> None:
        """Pause the process."""
        self.instance.paused_at = self.extra["paused_at"] = self.now

    def go_on(self) -> None:
        """Resume a paused process, with the time that its work had left."""
        if self.instance.paused_at is not None:
            self.instance.paused_at = self.extra["paused_at"] = None
            self.to_wake |= resume_work(self.instance.pk, self.now)
            send(inbox.release_claimed(self.instance, self.now))

    @property
    def paused(self) -> bool:
        """Whether the process is paused after this change."""
        return self.instance.paused_at is not None

    def write(self) -> None:
        """Send all writes in one message, and announce the change after the commit.

        Raises:
            LeaseLost: another change has moved the process or settled the cause; roll back.
        """
        self.send(Batch(merge_alike(self.prepare())))
        self.after_write()

    def prepare(self) -> list[Statement]:
        """Return all writes, in their order."""
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
        # The process first, since every change locks it: a change without its lock must not lock its other rows.
        rows = [self._instance(), *self.marks, *self.writes, self._checkpoint()]
        self._offered = self._offered_again()
        return [*rows, *self.notices, *self._offered]

    def after_write(self) -> None:
        """Announce the change and wake queues, after its writes were sent."""
        if self.paused:
            suspend_work(self.instance.pk, self.now)
        self.instance.revision = self.revision
        announce(self.instance, self.steps or {self.instance.step: ""}, self.edge)
        for queue in self.to_wake:
            wake_queue_after_commit(queue, others=True)
        if self._offered:
            offering.wake_queue_of(self.instance)

    # Overridden by managers and workflows

    def settle_status(self) -> None:
        """Work the process's status out."""
        if self.may_have_failed and self.instance.finished_at is None:
            self.look_again()

    def columns(self) -> dict[str, Any]:
        """Return the columns of the process that this kind of change writes, besides those of every change."""
        return {}

    def awaited_types(self) -> offering.Types:
        """Return the types of events that the process may take after this change."""
        return offering.awaited_types(self.instance)

    def fence_columns(self) -> dict[str, Any]:
        """Return the columns that the stored process must still have."""
        known = {"id": self.instance.pk, "revision": self.revision - 1}
        if self.alone:  # parking an event adds no revision
            known["parked"] = self.instance.parked
        return known

    def checkpoint_state(self) -> tuple[list[str], Any]:
        """Return the steps and the data of the checkpoint."""
        steps = [self.instance.step] if self.instance.step else []
        # A workflow's data is its input, which the first checkpoint has.
        return steps, {} if definitions.runs_workflow(
            self.instance
        ) else self.instance.data

    def send(self, batch: Batch) -> None:
        """Send the writes in the running transaction."""
        batch.send()

    # Shared by all

    def look_again(self) -> None:
        """Work the status out from the stored rows; work that this change settles no longer counts as trouble."""
        self.flush()
        self.instance.status = status_of(self.instance, troubled=self.may_have_failed)

    def flush(self) -> None:
        """Send the writes collected so far, in the running transaction, so that later queries see them."""
        self.sent = True
        send([*self.marks, *self.writes])
        self.marks, self.writes = [], []

    def _tell_parent(self) -> None:
        """Wake the parent's step of this process if the process has ended, has failed, or is no longer failed."""
        now = self.instance.status
        over = self.instance.finished_at is not None
        waiting = StepRun.objects.filter(child=self.instance.pk, finished_at=None)
        if not (over or self.failed or now == Status.FAILED != self.before):
            stood = self.before in (Status.FAILED, Status.PAUSED)
            if now == self.before or not stood:
                return
            waiting = waiting.filter(status=StepStatus.FAILED)
        for run in waiting:
            awake = {"wake_at": self.now, "remaining": None}
            still = {"id": run.pk, "finished_at": None}
            self.writes.append(step_runs.update(awake, still, None))
            self.to_wake.add(run.queue)

    def _events_matter_no_more(self) -> Statement:
        """Resolve the incidents of failed events: a cancelled process needs no event.

        After a completed process they stay open: no person has decided that the events were not wanted.
        """
        about = {"kind": Incident.Kind.EVENT_FAILED, "instance_id": self.instance.pk}
        return incidents.resolve(incidents.CANCELLED, self.now, **about)

    def _check_limit(self) -> None:
        """Check the limit on transitions, which stops an endless process; it may still fail, be undone, and end."""
        if self.instance.status == Status.FAILED or self._comes_to_its_end():
            return
        limit = conf().TRANSITIONS_LIMIT
        if self.revision > limit:
            raise LimitReached(
                "the process has made %(number)s transitions, the most it may (PROCESSION TRANSITIONS_LIMIT)",
                f"{limit:,}",
            )

    def _comes_to_its_end(self) -> bool:
        """Whether no endless round can follow from this change."""
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
            **self.extra,
            "revision": self.revision,
            "parked": instance.parked,
            "escalation_level": instance.escalation_level,
            "escalated_at": instance.escalated_at,
            "changed_at": self.now,
            "finished_at": instance.finished_at,
        }
        return instances.update(changed, self.fence_columns())

    def _checkpoint(self) -> Statement:
        steps, data = self.checkpoint_state()
        row = new_row(
            Checkpoint,
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
        """Offer the oldest parked event that the process may take now; at the process's end all, a few at a time."""
        pk, now = self.instance.pk, self.now
        if self.paused or not self.instance.parked or not self.offers:
            return []
        if self.instance.finished_at is not None:
            return [offering.offer_leftovers(pk, offering.ENDED, now)]
        return offering.offer_oldest(pk, self.awaited_types(), now)


def announce_written(changes: Iterable[ProcessChange]) -> None:
    """Announce changes that were written together, and wake each queue once for all of them."""
    queues = set[str]()
    with announce_together():
        for change in changes:
            queues |= change.to_wake
            change.to_wake = set()
            change.after_write()
    for queue in queues:
        wake_queue_after_commit(queue, others=True)


def is_independent(instance: ProcessInstance) -> bool:
    """Whether a change of the process concerns no parent, no parked event and no pause."""
    return (
        instance.finished_at is None
        and instance.paused_at is None
        and instance.parent_id is None
        and not instance.parked
    )


def settle_without_move(
    process: ProcessInstance | None,
    cause: CauseKind,
    work: Work,
    marks: Sequence[Statement],
    now: datetime,
) -> None:
    """Settle work that moves no step, and work out the status of a process that was in trouble.

    Args:
        process: the locked process; None if its trouble cannot come from this work.
        cause: the kind of cause.
        work: an event, a command or a deadline.
        marks: the writes that settle it.
        now: the database's time.
    """
    if process is None or process.finished_at or process.status not in TROUBLED:
        send(marks)
        return
    change = ProcessChange(process, Cause.of(cause, work.pk, process.revision), now)
    change.offers = False  # an event that is parked again would be offered without end
    change.mark(*marks)
    change.write()
