"""The refusal of ended processes with due work: a pause could not hold this work back after an import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from orchestrator.engine.sql.batch import chunks
from orchestrator.exceptions import OperationRefused
from orchestrator.models import InboxEvent, IssuedCommand, StepRun

AT_ONCE = 500

WORK: tuple[tuple[str, Any, str], ...] = (
    ("command", IssuedCommand, "instance"),
    ("event", InboxEvent, "process"),
    ("step", StepRun, "instance"),
)


def check_settled(tree: Iterable[UUID]) -> None:
    """Refuse a tree with an ended process that has due work.

    Raises:
        OperationRefused: there is such a process.
    """
    for some in chunks(list(tree), AT_ONCE):
        for noun, model, process in WORK:
            ended = {f"{process}__in": some, f"{process}__finished_at__isnull": False}
            row = model.objects.filter(wake_at__isnull=False, **ended).first()
            if row is not None:
                raise OperationRefused(
                    "the process %(process)s has ended, and a %(name)s of it is still to be done (%(what)s): export it "
                    "when that is done, or settled by an operator",
                    getattr(row, f"{process}_id"),
                    noun,
                    row,
                )
