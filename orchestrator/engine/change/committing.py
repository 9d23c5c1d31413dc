"""Committing changes of several processes together, each as if by itself.

1. prepare each; 2. leave out what cannot be prepared, or cannot go with the others; 3. commit the rest in one group
commit; 4. take what was written; 5. where the database's refusal passes by itself, note that the outcome is uncertain.

What is left out has left nothing. Whoever called does it singly, which tells what stands in its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.storage import group_commit, uncertain
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.queue import ring_after_commit

log = logging.getLogger(__name__)

Work = TypeVar("Work")
Change = TypeVar("Change", bound=ProcessChange)


@dataclass
class CommittedTogether(Generic[Work, Change]):
    """What became of several pieces of work.

    Args:
        done: those that were written, with their changes.
        left_out: the others, in their order.
        refusal: what the database said of some of these.
    """

    done: list[tuple[Work, Change]] = field(default_factory=list)
    left_out: list[Work] = field(default_factory=list)
    refusal: Exception | None = None


def commit_together(
    works: Iterable[Work],
    prepare: Callable[[Work], tuple[Change, Sequence[Statement]]],
) -> CommittedTogether[Work, Change]:
    """Commits what several pieces of work lead to, no two of one process.

    Args:
        works: the pieces of work.
        prepare: makes the change of one, and all that is written with it; nothing of that may have happened yet.
    """
    found = CommittedTogether[Work, Change]()
    ready, changes, writes = list[Work](), list[Change](), list[Sequence[Statement]]()
    for work in works:
        try:
            change, rows = prepare(work)
        except Exception as error:  # noqa: BLE001  # singly it is stored with what is wrong
            log.info("%s is done singly: %s", work, error)
            found.left_out.append(work)
            continue
        ready.append(work)
        changes.append(change)
        writes.append(rows)
    if not writes:
        return found
    written, found.refusal = group_commit.commit(writes)
    if found.refusal is not None:
        log.info(
            "some of %s could not be written together: %s", len(writes), found.refusal
        )
        if passes(found.refusal):
            uncertain.note()
    queues = set[str]()
    for work, change, is_written in zip(ready, changes, written, strict=True):
        if not is_written:
            found.left_out.append(work)
            continue
        queues |= change.rings
        change.rings = set()  # once for all of them
        change.written()
        found.done.append((work, change))
    for queue in queues:
        ring_after_commit(queue, others=True)
    return found
