"""Deadlines that are over, and that nothing has carried out."""

from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from orchestrator.models import StepKind, StepRun, StepStatus

LATE = timedelta(minutes=1)
"""A deadline that is carried out later than this needs a person, who sees why."""


def overdue_visits() -> QuerySet[StepRun]:
    """The visits of live processes whose deadline was over a while ago, and is not carried out yet."""
    waits = ["", StepKind.WAIT, StepKind.ASK]
    # By the clock of the database, which has said when: that of a web host may be another.
    rows = StepRun.objects.filter(wake_at__lte=Now() - LATE, kind__in=waits)
    return rows.filter(status=StepStatus.WAITING, finished_at=None)
