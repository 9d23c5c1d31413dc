"""The commands of a process, compared with those that its transitions issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID

from orchestrator.definition import Command, Decision
from orchestrator.definition.codec import encode
from orchestrator.definition.declarations.message_forms import current_form
from orchestrator.definition.messages import renamed
from orchestrator.engine.invariants.stored_sets import StoredCommand
from orchestrator.models import CommandStatus, Delivery, IssuedCommand, command_id

MOST = 20
"""Most findings of one kind, or of one process, in a report."""


class IssuedCommands:
    """The stored commands of a process, compared with those that its transitions issue.

    Args:
        process_id: the process.
        rows: its commands.
        in_order: whether the running code knows which of its commands follow each other.
    """

    def __init__(
        self, process_id: UUID, rows: Iterable[StoredCommand], *, in_order: bool
    ) -> None:
        self.process_id = process_id
        self._stored = {row.pk: row for row in rows}
        # The commands that an early release has issued do not wait for each other.
        held = (row.holds is not None for row in self._stored.values())
        self._in_order = in_order and any(held)

    def compared(self, revision: int, decision: Decision | None) -> Iterator[str]:
        """Yield the differences to the commands that the transition to a revision issues."""
        if decision is None:
            return
        before: StoredCommand | None = None
        for place, command in enumerate(decision.commands):
            kind = type(command).__name__
            found = self._stored.pop(command_id(self.process_id, revision, place), None)
            if found is None:
                yield f"revision {revision} of {self.process_id} issued {kind}, which is not there"
                continue
            if found.revision != revision or not _is_stored_as(command, found):
                yield f"{kind} of revision {revision} of {self.process_id} is not what was issued"
            if found.delivery != Delivery.AFTER_COMMIT or place in decision.at_once:
                continue
            if before is not None and self._is_early(before, found):
                yield f"command {found.pk} is {found.status} before {before.pk}, which it follows, has settled"
            before = found

    def _is_early(self, before: StoredCommand, command: StoredCommand) -> bool:
        """Whether a command was released before the one that it follows; `outbox` reports it if that one holds it."""
        if not self._in_order or before.holds == command.pk:
            return False
        let_go = command.status != CommandStatus.HELD
        return let_go and before.status not in IssuedCommand.SETTLED

    def unread(self, revision: int) -> None:
        """Leave out the commands of a transition whose definition the running code lacks."""
        self._stored = {
            pk: row for pk, row in self._stored.items() if row.revision != revision
        }

    def left_over(self) -> Iterator[str]:
        """Yield the commands that no transition issued."""
        for row in islice(self._stored.values(), MOST):
            yield f"{row.type} {row.pk} of revision {row.revision} of {self.process_id} was issued by no transition"


def _is_stored_as(command: Command, row: StoredCommand) -> bool:
    """Return whether a stored row reads as a command: under a former name too, and without fields at their default."""
    form = type(command)
    named = form.__name__ in (row.type, renamed.get(row.type))
    return named and current_form(form, row.body) == encode(command)
