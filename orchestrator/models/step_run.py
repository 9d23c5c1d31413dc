from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import (
    Work,
    claim_indexes,
    definition_column,
    process_start_column,
)


class StepStatus(models.TextChoices):
    WAITING = "waiting", _("waiting")
    READY = "ready", _("ready")
    RUNNING = "running", _("running")
    RETRYING = "retrying", _("retrying")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    SKIPPED = "skipped", _("skipped")
    NOT_TAKEN = "not_taken", _("not taken")
    CANCELLED = "cancelled", _("cancelled")
    SUPERSEDED = "superseded", _("superseded")


class StepKind(models.TextChoices):
    """The kind of a visit of a workflow's step. Visits of a process manager have none."""

    STEP = "step", _("step")
    JOIN = "join", _("waits for its branches")
    MAP = "map", _("map")
    ITEM = "item", _("element of a map")
    WAIT = "wait", _("waits for an event")
    ASK = "ask", _("waits for a decision")
    SLEEP = "sleep", _("lets time pass")
    RUN = "run", _("sub-process")
    UNDO = "undo", _("compensation")


class Lost(models.TextChoices):
    """How a visit's last attempt was lost: with its worker, or before its outcome was stored."""

    TIMED_OUT = ("timed_out", _("it ran longer than it may, or did not report in time"))
    DIED = "died", _("the worker died or was killed")
    CUT_OFF = "cut_off", _("it was cut off before its outcome was stored")


class Blocked(models.TextChoices):
    """The reason why a visit does not continue by itself."""

    REDO = "redo", _("waits for the redo of a step")
    FAILURE = "failure", _("cancelled because a step failed")
    UNDOING = "undoing", _("comes to its end and is undone then")


HELD = "held"
"""The mark in the progress of a map that begins no further element."""
FIRST_CALLED = "first_called"
SKIPPED_BECAUSE = "skipped"
"""In the progress of an open step that has returned: why it skipped itself."""
CALLS = "calls"
"""The number of calls of a function that has returned, in the progress of a step whose condition is tried again."""


class StepRun(Work):
    """One visit of one step by one process. Time in step, path and timeline come from these rows."""

    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # visits_by_start begins with it
        related_name="step_runs",
    )
    definition = models.CharField(
        _("definition name"),
        max_length=100,
        blank=True,
        editable=False,
        db_default="",
        default="",
    )
    """The name of its process's definition, by which visits are claimed in turns; earlier releases leave it empty."""
    stored_definition = definition_column()
    """The map counts by it; null for elements of maps."""
    process_started_at = process_start_column()
    node = models.CharField(_("step"), max_length=100)
    kind = models.CharField(_("kind"), max_length=5, choices=StepKind, blank=True)
    visit = models.PositiveIntegerField(_("visit"), default=1)
    item = models.PositiveIntegerField(_("element"), null=True, blank=True)
    round = models.PositiveSmallIntegerField(_("round"), default=1)
    redo = models.BooleanField(_("only redone"), default=False)
    entered = models.PositiveIntegerField(_("entered at revision"), default=0)
    left = models.PositiveIntegerField(_("left at revision"), null=True, blank=True)
    arrived = models.PositiveIntegerField(_("branches that have arrived"), default=0)
    taken = models.PositiveIntegerField(_("branches that were taken"), default=0)
    element = models.JSONField(_("element's value"), null=True, blank=True)
    expected = models.PositiveIntegerField(_("elements"), null=True, blank=True)
    status = models.CharField(_("status"), max_length=10, choices=StepStatus)
    deadlines_fired = models.PositiveSmallIntegerField(_("deadlines fired"), default=0)
    result = models.JSONField(_("result"), null=True, blank=True)
    checksum = models.CharField(_("checksum"), max_length=64, blank=True)
    saved = models.JSONField(_("checkpoint inside"), null=True, blank=True)
    blocked = models.CharField(
        _("blocked"), max_length=8, choices=Blocked, blank=True, default=""
    )
    blocked_on = models.CharField(_("blocked on step"), max_length=100, blank=True)
    child = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="parent_runs",
    )
    error = models.TextField(_("error"), blank=True)
    declined = models.BooleanField(_("declined"), default=False)
    lost = models.CharField(
        _("worker lost"), max_length=10, choices=Lost, blank=True, default=""
    )
    given_back = models.PositiveSmallIntegerField(
        _("times given back in this attempt"), default=0
    )
    progress = models.JSONField(_("progress"), null=True, blank=True)
    remaining = models.DurationField(
        _("left until it wakes when its process goes on"), null=True, blank=True
    )
    extended = models.DurationField(
        _("by how much people have put off its deadlines"), null=True, blank=True
    )
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    called = 0.0
    """The monotonic time at which its function was called in this claim, or 0; no column."""

    class Meta:
        verbose_name = _("step run")
        verbose_name_plural = _("step runs")
        indexes = [
            *claim_indexes("due_step_runs", "held_step_runs"),
            # Due work by definition, for claims in turns.
            models.Index(
                fields=["queue", "definition", "status", "wake_at", "id"],
                condition=Q(owner="", wake_at__isnull=False),
                name="due_by_definition",
            ),
            # The open questions to operators, oldest first.
            models.Index(
                fields=["id"],
                condition=Q(kind="ask", finished_at__isnull=True),
                name="open_questions",
            ),
            # The processes in a step, without elements of maps and waiting joins, which are many.
            models.Index(
                fields=["node", "-process_started_at", "-instance"],
                condition=Q(finished_at__isnull=True, item__isnull=True)
                & ~Q(kind="join"),
                name="open_visits_of_step",
            ),
            # The waits: the least time left first, then the longest wait. A map stands for its elements.
            models.Index(
                fields=["wake_at", "started_at", "id"],
                condition=Q(
                    finished_at__isnull=True,
                    item__isnull=True,
                    status__in=["waiting", "retrying"],
                )
                & ~Q(kind="join"),
                name="open_waits",
            ),
            # The current steps of a process with a long history. The second column, always null, makes SQLite prefer
            # this index to the next one.
            models.Index(
                fields=["instance", "finished_at"],
                condition=Q(finished_at__isnull=True),
                name="open_visits_of_process",
            ),
            # The visits of one process by their starts, apart from the many elements of its maps.
            models.Index(
                fields=["instance", "item", "started_at", "id"], name="visits_by_start"
            ),
            # The visits that ended in a recent window, for the map of a definition.
            models.Index(
                fields=["stored_definition", "finished_at"],
                condition=Q(finished_at__isnull=False, item__isnull=True),
                name="ended_visits",
            ),
            # The step of a sub-process, when that ends.
            models.Index(
                fields=["child"],
                condition=Q(child__isnull=False),
                name="step_runs_by_child",
            ),
        ]
        constraints = [
            # A visit has one row; a redo of it is another round.
            models.UniqueConstraint(
                fields=["instance", "node", "visit", "round", "kind"],
                condition=~Q(kind="") & Q(item__isnull=True),
                name="one_run_per_visit",
            ),
            models.UniqueConstraint(
                fields=["instance", "node", "item", "visit", "round", "kind"],
                condition=Q(item__isnull=False),
                name="one_run_per_element",
            ),
        ]

    @property
    def holds(self) -> bool:
        """Whether a map begins no further element: more have failed than it tolerates."""
        return self.finished_at is None and HELD in (self.progress or {})

    def __str__(self) -> str:
        return f"{self.node} of {self.instance_id}"

    @property
    def polled(self) -> dict[str, float]:
        """The part of its progress that a step has once it polls: the seconds from its start to its first call."""
        shown = self.progress if isinstance(self.progress, dict) else {}
        return {name: shown[name] for name in (FIRST_CALLED,) if name in shown}

    @property
    def skipped_because(self) -> str | None:
        """Why a step that has returned skipped itself; None if it did not. What follows it is not decided yet."""
        shown = self.progress if isinstance(self.progress, dict) else {}
        return shown.get(SKIPPED_BECAUSE)
