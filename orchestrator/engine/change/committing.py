"""Committing changes of several processes together, each independent of the others.

1. Prepare each change. 2. Leave out those that cannot be prepared, or cannot share a commit. 3. Commit the rest in one
group commit. 4. Announce the written ones. 5. After an error that passes by itself, note that the outcome is uncertain.

A change that is left out has written nothing. The caller commits it singly, which shows the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestrator.engine.change.change import ProcessChange, announce_written
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.sql.connection import note_uncertain_commit, passes

log = logging.getLogger(__name__)

T = TypeVar("T")
ReadyChange = TypeVar("ReadyChange", bound=ProcessChange)


@dataclass
class CommitResult(Generic[T, ReadyChange]):
    """The outcome for several pieces of work.

    Args:
        done: the work whose changes were written, with these changes.
        left_out: the other work, in its order.
        refusal: the database's error for some of that.
    """

    done: list[tuple[T, ReadyChange]] = field(default_factory=list)
    left_out: list[T] = field(default_factory=list)
    refusal: Exception | None = None


def commit_together(
    works: Iterable[T], prepare: Callable[[T], tuple[ReadyChange, Sequence[Statement]]]
) -> CommitResult[T, ReadyChange]:
    """Commit the changes of several pieces of work together.

    Args:
        works: the pieces of work, no two of one process.
        prepare: makes the change of one, and all its writes, without sending any.
    """
    found: CommitResult[T, ReadyChange] = CommitResult()
    ready = list(_prepared(works, prepare, found.left_out))
    if not ready:
        return found
    written, found.refusal = group_commit.commit_changes([rows for *_, rows in ready])
    if found.refusal is not None:
        log.info("some changes could not be written together: %s", found.refusal)
    for (work, change, _), is_written in zip(ready, written, strict=True):
        if is_written:
            found.done.append((work, change))
        else:
            found.left_out.append(work)
    announce_written([change for _, change in found.done])
    if passes(found.refusal):
        note_uncertain_commit()  # last: it closes the connection
    return found


def _prepared(
    works: Iterable[T],
    prepare: Callable[[T], tuple[ReadyChange, Sequence[Statement]]],
    left_out: list[T],
) -> Iterator[tuple[T, ReadyChange, Sequence[Statement]]]:
    for work in works:
        try:
            change, writes = prepare(work)
        except BaseException as error:  # noqa: BLE001  # singly it is stored with what is wrong
            # The log names neither the work nor its error's message: both may contain a secret.
            log.info("a change is done singly: %s", type(error).__name__)
            left_out.append(work)
        else:
            yield work, change, writes
