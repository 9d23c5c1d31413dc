"""Committing changes of several processes together, each as if by itself.

1. prepare each; 2. leave out what cannot be prepared, or cannot go with the others; 3. commit the rest in one group
commit; 4. take what was written; 5. where the database's refusal passes by itself, note that the outcome is uncertain.

What is left out has left nothing. Whoever called does it singly, which tells what stands in its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.storage import group_commit, uncertain
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.queue import wake_queue_after_commit

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
    ready = list(_prepared(works, prepare, found.left_out))
    if not ready:
        return found
    written, found.refusal = group_commit.commit([rows for *_, rows in ready])
    if found.refusal is not None:
        log.info("some changes could not be written together: %s", found.refusal)
    for (work, change, _), is_written in zip(ready, written, strict=True):
        if is_written:
            found.done.append((work, change))
        else:
            found.left_out.append(work)
    _written([change for _, change in found.done])
    if passes(found.refusal):
        uncertain.note()  # last: it gives the connection up
    return found


def _prepared(
    works: Iterable[Work],
    prepare: Callable[[Work], tuple[Change, Sequence[Statement]]],
    left_out: list[Work],
) -> Iterator[tuple[Work, Change, Sequence[Statement]]]:
    for work in works:
        try:
            yield work, *prepare(work)
        except Exception as error:  # noqa: BLE001  # singly it is stored with what is wrong
            # Neither the work nor what its error says is named: both may tell a secret.
            log.info("a change is done singly: %s", type(error).__name__)
            left_out.append(work)


def _written(changes: Iterable[ProcessChange]) -> None:
    """What follows when changes were written; queues are rung once for all of them."""
    queues = set[str]()
    for change in changes:
        queues |= change.rings
        change.rings = set()
        change.written()
    for queue in queues:
        wake_queue_after_commit(queue, others=True)
