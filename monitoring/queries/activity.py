"""The activity of processes in a step, now or in a recent window; the map of a definition and the lists share it."""

from datetime import timedelta

from django.db.models import (
    Case,
    CharField,
    Exists,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from orchestrator.models import Incident, Status, StepKind, StepRun, StepStatus

WINDOWS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}

LATE = timedelta(minutes=1)
"""The time after which an overdue deadline needs a person."""

NOW = ("active", "waiting", "failed")
"""The activities of a process in its current step."""

HERE = "here"
"""The name of any of these activities."""

LEFT = "left-"
"""The prefix of a window's name: processes that finished the step in that window."""

FINISHED = (StepStatus.DONE, StepStatus.SKIPPED, StepStatus.FAILED)
"""The statuses of finished visits; other visits were given up or never taken."""

COUNTED = Q(status__in=FINISHED, item=None, redo=False) & ~Q(
    kind__in=[StepKind.JOIN, StepKind.UNDO]
)
"""The visits that the numbers of a window count, once they have ended."""

FAILED_THERE = Incident.objects.open().filter(
    instance=OuterRef("instance"), step=OuterRef("node"), kind=Incident.Kind.STEP_FAILED
)

# A visit of a process manager has no status of its own while its process is in the step, and that of a map none of its
# elements. A process has few open incidents, and a map may have very many elements.
IS_FAILED = (
    Q(status=StepStatus.FAILED)
    | Q(kind="", instance__status=Status.FAILED)
    | Q(Exists(FAILED_THERE), kind=StepKind.MAP, instance__status=Status.FAILED)
)
IS_WAITING = Q(~Q(kind__in=["", StepKind.MAP]), status=StepStatus.WAITING) | Q(
    kind="", instance__status__in=[Status.WAITING, Status.PAUSED]
)


def open_visits() -> QuerySet[StepRun]:
    """Return the current visits of processes, without waiting joins and without elements of maps."""
    runs = StepRun.objects.filter(finished_at=None, item=None)
    return runs.exclude(kind=StepKind.JOIN)


def activity_now() -> Case:
    """Return the expression for the activity of an open visit: one of `NOW`."""
    return Case(
        When(IS_FAILED, then=Value("failed")),
        When(IS_WAITING, then=Value("waiting")),
        default=Value("active"),
        output_field=CharField(),
    )


def visits_with_activity(runs: QuerySet[StepRun], doing: str) -> QuerySet[StepRun]:
    """Limit open visits to one activity."""
    if doing == HERE:
        return runs
    return runs.alias(doing=activity_now()).filter(doing=doing)


def ended_within(window: timedelta) -> Q:
    """Return the condition that a visit ended in a window, whenever it began."""
    return Q(COUNTED, finished_at__gte=timezone.now() - window)


def parse_window(doing: str) -> timedelta | None:
    """Parse the window of "left-hour" and the like; None for anything else."""
    name = doing.removeprefix(LEFT)
    return WINDOWS.get(name) if name != doing else None


def window_word(name: str) -> str:
    """Return the label of a window."""
    words = {"hour": _("last hour"), "day": _("last day"), "week": _("last week")}
    return words[name]


def activity_word(doing: str) -> str:
    """Return the label of an activity; an unknown name is returned unchanged."""
    words = {
        HERE: _("in it now"),
        "active": _("at work"),
        "waiting": _("waiting"),
        "failed": _("failed"),
        "left-hour": _("finished in the last hour"),
        "left-day": _("finished in the last day"),
        "left-week": _("finished in the last week"),
    }
    return words.get(doing, doing)


def overdue_visits() -> QuerySet[StepRun]:
    """Return the visits of live processes whose deadline passed a while ago and was not carried out."""
    waits = ["", StepKind.WAIT, StepKind.ASK]
    # By the clock of the database, which set the deadline: the clock of a web host may differ.
    rows = StepRun.objects.filter(wake_at__lte=Now() - LATE, kind__in=waits)
    return rows.filter(status=StepStatus.WAITING, finished_at=None)
