"""What processes do in a step, or did lately: the conditions of the map's numbers and of the lists that they open."""

from datetime import timedelta

from django.db.models import Case, CharField, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from orchestrator.models import Status, StepKind, StepRun, StepStatus

WINDOWS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}

LATE = timedelta(minutes=1)
"""A deadline that is carried out later than this needs a person, who sees why."""

NOW = ("active", "waiting", "failed")
"""What a process can do in the step in which it is."""

HERE = "here"
"""Any of these."""

LEFT = "left-"
"""Before the name of a window: what has finished the step in it."""

FINISHED = (StepStatus.DONE, StepStatus.SKIPPED, StepStatus.FAILED)
"""How a visit ends that something follows from; others were given up, or never taken."""

# A visit of a process manager has no status of its own while its process is in the step.
IS_FAILED = Q(status=StepStatus.FAILED) | Q(kind="", instance__status=Status.FAILED)
IS_WAITING = Q(~Q(kind__in=["", StepKind.MAP]), status=StepStatus.WAITING) | Q(
    kind="", instance__status__in=[Status.WAITING, Status.PAUSED]
)


def open_visits() -> QuerySet[StepRun]:
    """The visits that processes are at; a join that waits for branches, or one element of a map, is none."""
    runs = StepRun.objects.filter(finished_at=None, item=None)
    return runs.exclude(kind=StepKind.JOIN)


def doing_now() -> Case:
    """What is done in an open visit: one of `NOW`."""
    return Case(
        When(IS_FAILED, then=Value("failed")),
        When(IS_WAITING, then=Value("waiting")),
        default=Value("active"),
        output_field=CharField(),
    )


def visits_that_do(runs: QuerySet[StepRun], doing: str) -> QuerySet[StepRun]:
    """Those of some open visits in which just this is done."""
    if doing == HERE:
        return runs
    return runs.alias(doing=doing_now()).filter(doing=doing)


def came_to_its_end(window: timedelta) -> Q:
    """Of a visit: that it ended since then, whenever it began."""
    since = timezone.now() - window
    ended = Q(finished_at__gte=since, status__in=FINISHED, item=None, redo=False)
    return ended & ~Q(kind__in=[StepKind.JOIN, StepKind.UNDO])


def window_of(doing: str) -> timedelta | None:
    """The window that "left-hour" and the like name; None for anything else."""
    name = doing.removeprefix(LEFT)
    return WINDOWS.get(name) if name != doing else None


def window_word(name: str) -> str:
    """A window as people read it."""
    words = {"hour": _("last hour"), "day": _("last day"), "week": _("last week")}
    return words[name]


def doing_word(doing: str) -> str:
    """What is done as people read it; as it is where nothing is called so."""
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
    """The visits of live processes whose deadline was over a while ago, and is not carried out yet."""
    waits = ["", StepKind.WAIT, StepKind.ASK]
    # By the clock of the database, which has said when: that of a web host may be another.
    rows = StepRun.objects.filter(wake_at__lte=Now() - LATE, kind__in=waits)
    return rows.filter(status=StepStatus.WAITING, finished_at=None)
