"""Everything Procession raises.

ProcessionError
├── InvalidDefinition       a definition contradicts itself; raised at import
├── InvalidMessage          an event, a command or data does not have the declared form
│   └── UnreadableValue     the running code cannot read what another release has stored
├── UnknownEventType        no definition and no handler knows this event type
├── UnknownDefinition       no such process manager or workflow in the code
├── ConflictingEvent        an event id was used before with another body
├── EventRefused            one of several events sent together cannot be stored
├── KeyTaken                another live process has the correlation key
├── HandlerMissing          a command without a handler in the running code
├── NotMigrated              a process cannot go over to another version of its definition
├── NoCase                  a route or a loop found no way on
├── Outcome                 how a handler or step says what its failure means
│   ├── Permanent           do not try again
│   ├── Retry               try again, after a delay
│   ├── Poll                call the step again later, uncharged
│   ├── CorruptInput        an earlier step's result is bad: redo that step
│   └── Skip                pass this step over, and go on
├── TimedOut                a step ran longer than its timeout
├── StoodIdle               application code kept its transaction waiting for too long
├── TransactionAborted      application code went on after a statement that had failed
├── ExitRefused             a step raised SystemExit or the like
├── Interrupted             a step that must not run twice was cut off
├── ChildCancelled          a sub-process was cancelled
├── SubprocessFailed        a sub-process has failed, and none of its rows catches that
│   └── SubprocessDeclined  a step in it declined; this is a Permanent too
├── LimitReached            a process made more transitions than it may
├── WorkerDied              the worker died in every attempt
├── LeaseLost               another worker has claimed the work; this attempt stores nothing
└── OperationRefused        an operator's action was not carried out
    ├── PermissionMissing   the operator may not do this
    └── StaleRevision       the page was older than the process

Local to their modules: `conf.SettingRefused`, `strict_json.TooLarge`, `sign_in.InvalidLink`, `serving.CannotStart`,
`diagrams.layout.LayoutFailed` (all of this tree) and `webhooks.not_accepted.NotAccepted`.

The first line of the class docstring is the default message.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from orchestrator.text import Text, with_error_type


class ProcessionError(Exception):
    """Something in Procession went wrong.

    Args:
        message: the text for people.
        values: the values of its places, if it is a template (see `orchestrator.text`).
    """

    def __init__(self, message: str = "", *values: object) -> None:
        said = message or (inspect.getdoc(type(self)) or "").partition("\n")[0]
        super().__init__(said if message and not values else Text(said, *values))

    @property
    def told(self) -> str:
        """The text for people: a `Text` if the engine wrote it."""
        told = self.args[0] if len(self.args) == 1 else ""
        return told if isinstance(told, Text) and told == str(self) else str(self)


class InvalidDefinition(ProcessionError):
    """The definition contradicts itself.

    Args:
        definition: name of the class.
        row: the row as it reads, or "" when the mistake is in the class itself.
        reason: what is wrong and what to do about it.
    """

    def __init__(self, definition: str, row: str, reason: str) -> None:
        self.definition, self.row, self.reason = definition, row, reason
        where = f"{definition}, row {row!r}" if row else definition
        super().__init__(f"{where}: {reason}")


class InvalidMessage(ProcessionError):
    """The message does not have the declared form.

    Args:
        message: what is wrong and what would be right.
        path: where in the message, like "items.3.price"; "" for the whole.

    Attributes:
        alike: the message without what differs between failures of one cause, the values and the keys of dictionaries;
            "" if it has none of these.
    """

    def __init__(self, message: str, path: str = "", alike: str = "") -> None:
        self.path, self.alike = path, alike
        super().__init__(with_error_type(path, message) if path else message)


class UnreadableValue(InvalidMessage):
    """The running code cannot read a stored value: another release has stored it.

    Args:
        name: the name of the value, for people.
        error: why it cannot be read.
    """

    def __init__(self, name: str, error: InvalidMessage) -> None:
        super().__init__(
            Text("the running code cannot read %(name)s: %(why)s", name, error)
        )
        self.path = error.path
        self.alike = error.alike and f"{name}: {error.alike}"


class UnknownEventType(ProcessionError):
    """No process manager and no event handler knows this event type."""


class UnknownDefinition(ProcessionError):
    """No process manager of this name and version is in the running code."""


class ConflictingEvent(ProcessionError):
    """The same source sent this event id before, with another body."""


class OneRefused(ProcessionError):
    """One of many is refused: those before it are stored, it and those after it are not.

    Args:
        receipts: the receipts of those before it.
        reason: its error; also the `__cause__`.
    """

    what = "message"
    reason: Exception

    def __init__(self, receipts: Sequence[Any], reason: Exception) -> None:
        self.receipts, self.reason = receipts, reason
        try:
            said = str(reason)
        except Exception:  # noqa: BLE001  # the error may be the application's
            said = type(reason).__name__
        super().__init__(f"{self.what} {self.place}, counted from 0: {said}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.receipts, self.reason)

    @property
    def place(self) -> int:
        """Its position among them, counted from 0."""
        return len(self.receipts)


class EventRefused(OneRefused):
    """One of many events cannot be stored."""

    what = "event"
    reason: ProcessionError


class StartRefused(OneRefused):
    """One of many processes cannot start; the reason may be an error of the application."""

    what = "start"


class KeyTaken(ProcessionError):
    """Another process of this definition lives under the same correlation key.

    Args:
        definition: its name.
        key: the correlation key.
        process_id: the live process that has it.
    """

    def __init__(self, definition: str, key: str, process_id: UUID) -> None:
        self.definition, self.key, self.process_id = definition, key, process_id
        super().__init__(
            Text(
                "there is already a live %(name)s with the key %(key)s, the process %(process)s: send it an event, "
                "wait for its end, or use another key",
                definition,
                repr(key),
                process_id,
            )
        )


class HandlerMissing(ProcessionError):
    """The running code has no handler for this command."""


class NotMigrated(ProcessionError):
    """The process cannot go over to the other version."""


class NoCase(ProcessionError):
    """No case of a route fits, or a loop has come to its bound."""


class Outcome(ProcessionError):
    """How a handler or a step says what its failure means; a step may also return it."""

    def _check_time(self, name: str, time: object) -> None:
        if not isinstance(time, timedelta):
            raise TypeError(
                f"{type(self).__name__}: {name}={time!r} must be a timedelta"
            )


class Permanent(Outcome):
    """Trying again cannot help."""


class Retry(Outcome):
    """Try again, even if the cause looks permanent. The failed attempt counts.

    Args:
        after: how long to wait, at most 1,000 years; None for the usual pause.
        message: the text for people.

    Raises:
        TypeError: `after` is no timedelta.
    """

    def __init__(self, after: timedelta | None = None, message: str = "") -> None:
        if after is not None:
            self._check_time("after", after)
        self.after = after
        super().__init__(message)


class Poll(Outcome):
    """The step is not done yet.

    It is called again later, which counts no attempt. With `TimedOut` it fails when its time is over.

    Args:
        after: how long to wait before the next call; at least a second.
        within: how long the step may poll, from its first call; at most 1,000 years. The last call is at its end. With
            0 or less, the first call is the last.
        message: the text for people.

    Raises:
        TypeError: `after` or `within` is no timedelta.
    """

    def __init__(self, after: timedelta, within: timedelta, message: str = "") -> None:
        for name, time in {"after": after, "within": within}.items():
            self._check_time(name, time)
        self.after, self.within = after, within
        super().__init__(message)


class CorruptInput(Outcome):
    """The result of an earlier step is bad: that step alone is redone, then this one tries again.

    Args:
        step: the name of the earlier step.
        message: what is wrong with its result.
    """

    def __init__(self, step: str, message: str = "") -> None:
        self.step = step
        super().__init__(message or Text("the result of %(step)s is bad", step))


class Skip(Outcome):
    """Pass this step over: the process goes on as if it were done.

    Args:
        message: why.
        result: what later steps get as its result.
    """

    def __init__(self, message: str = "", result: Any = None) -> None:
        self.result = result
        super().__init__(message)


class TimedOut(ProcessionError):
    """The step ran longer than its timeout, or did not report in time."""


class StoodIdle(ProcessionError):
    """Application code kept its transaction waiting for too long, and the database ended it."""


class TransactionAborted(ProcessionError):
    """A statement of application code failed in the engine's transaction, which can only be rolled back."""


class ExitRefused(ProcessionError):
    """A step raised what ends programs, such as SystemExit: its worker goes on, and the attempt has failed."""


class Interrupted(ProcessionError):
    """A step that is not idempotent was cut off: whether it had its effect is not known."""


class ChildCancelled(ProcessionError):
    """The sub-process was cancelled."""


class SubprocessFailed(ProcessionError):
    """A sub-process has failed, and nothing in it takes that; its parent's `catch` sees this error.

    Args:
        name: of its definition.
        process_id: the sub-process.
        step: in it, which has failed.
        error: the name of the class of what that step failed with.
        text: what it said.
        cause: the key of that failure's group.
    """

    sentence = Text("the sub-process %(name)s %(process)s failed at %(step)s: %(why)s")

    def __init__(
        self,
        name: str,
        process_id: UUID,
        step: str,
        error: str,
        text: str,
        cause: str = "",
    ) -> None:
        self.name, self.process_id, self.cause = name, process_id, cause
        self.step, self.error, self.text = step, error, text
        told = name, process_id, step, with_error_type(error, text)
        super().__init__(self.sentence.filled(*told))


class SubprocessDeclined(SubprocessFailed, Permanent):
    """A step of a sub-process declined: it raised `Permanent`, or so did one of a sub-process of its own."""

    sentence = Text(
        "the sub-process %(name)s %(process)s declined at %(step)s: %(why)s"
    )


class LimitReached(ProcessionError):
    """The process made more transitions than it may."""


class WorkerDied(ProcessionError):
    """The worker died in every attempt."""


class LeaseLost(ProcessionError):
    """Another worker has taken this work over; nothing of this attempt is kept."""


class OperationRefused(ProcessionError):
    """The action was not carried out."""

    @classmethod
    def raise_for(cls, reason: str) -> None:
        """Raise this error for a reason; "" is none."""
        if reason:
            raise cls(reason)


class PermissionMissing(OperationRefused):
    """Your account may not do this."""


class StaleRevision(OperationRefused):
    """The process has changed since the page was loaded."""
