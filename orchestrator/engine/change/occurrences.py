"""Writing down what people are to be told of, in the commit that makes it true; nothing where nobody wants to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from orchestrator.engine.storage import tables
from orchestrator.engine.storage.batch import Statement
from orchestrator.models import Occurrence, ProcessInstance
from orchestrator.notice_settings import Topic, is_wanted


def told(
    topics: Iterable[Topic],
    now: datetime,
    *,
    process: ProcessInstance | None = None,
    definition: str = "",
    step: str = "",
    recipients: Sequence[str] = (),
    **more: Any,
) -> list[Statement]:
    """Has people told, if any of them are to know.

    Args:
        topics: what it is.
        now: when it is.
        process: the process that it is about.
        definition: the name of its definition, where there is no process.
        step: where it is; the process's current step when empty.
        recipients: the names of those who are told, whatever else they want to be told of.
        more: further columns.
    """
    if process is not None:
        definition = process.name
        more |= {"process_id": process.pk, "correlation_key": process.correlation_key}
        step = step or process.step
    topics = list(topics)
    if not topics or not is_wanted(topics, definition, recipients):
        return []
    row = Occurrence(
        topics=" ".join(topics),
        recipients=list(recipients),
        definition=definition,
        step=step,
        at=now,
        **more,
    )
    return [tables.occurrences.insert(row)]
