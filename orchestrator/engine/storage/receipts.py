"""Storing events: each once, however often it is sent. The answer is a receipt.

One exchange with the database stores a new event with the commands of its simple event handlers; only a repeat is
looked up. One statement in a transaction stores several events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import F, Q

from orchestrator.containers import group_by_key
from orchestrator.engine.sql.batch import Batch, send
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.tables import commands, events, instances
from orchestrator.engine.storage.repeats import is_repeat
from orchestrator.exceptions import (
    ConflictingEvent,
    EventRefused,
    LeaseLost,
    ProcessionError,
)
from orchestrator.models import InboxEvent, IssuedCommand
from orchestrator.queue import wake_queue_after_commit

Name = tuple[str, str]
"""An event's source and id, by which its repeats are recognised."""
KnownEvents = dict[Name, list[InboxEvent]]

MANY = 500
"""The most events of one statement."""
MUCH = 1024 * 1024
"""The most characters of them together; one event alone may have more."""

DEADLOCK = "40P01"
TURNS = 5
"""How often a sender waits for other senders of the same events after a deadlock."""

NOT_KNOWN = Condition(
    f" AND NOT EXISTS (SELECT 1 FROM {events.name} AS known"  # noqa: S608  # names are the models'
    " WHERE known.source = new.source AND known.event_id = new.event_id)",
    (),
)
"""The condition that no stored event has the id of the new row's event."""


@dataclass(frozen=True)
class Receipt:
    """The receipt of an accepted event: the number of its inbox row, and its verdict so far."""

    number: int
    process_id: UUID | None
    verdict: str
    repeated: bool


@dataclass(frozen=True)
class StartReceipt(Receipt):
    """The receipt of an accepted start: its process has its id from the beginning."""

    process_id: UUID


@dataclass(frozen=True)
class Arrival:
    """An event that is to be stored.

    Args:
        rows: its rows in the inbox, one a target.
        reactions: the commands for its simple event handlers.
        size: how many characters its content has.
        process_id, key: the process and the correlation key that its sender named; "" for none.
    """

    rows: Sequence[InboxEvent]
    reactions: Sequence[IssuedCommand]
    size: int
    process_id: str
    key: str

    @property
    def name(self) -> Name:
        """The name by which its repeats are recognised."""
        first = self.rows[0]
        return first.source, first.event_id

    def receipt(self, number: int) -> Receipt:
        """Return the receipt of its first sending."""
        first = self.rows[0]
        return Receipt(number, first.process_id, str(first.verdict), repeated=False)


def store_event(arrival: Arrival) -> Receipt:
    """Store an event in the running transaction or in one of its own; count a repeat.

    Raises:
        ConflictingEvent: the id was used before for another event.
        KeyTaken: the event starts a process whose key a live one has, and is no repeat.
    """
    first = arrival.rows[0]
    while not (numbers := _inserted(arrival)):
        if known := _known([arrival.name]):
            return _repeats([arrival], known)[arrival.name]
        if first.starts:
            instances.check_free(first.target, first.correlation_key)
    _ring([arrival])
    return arrival.receipt(min(numbers))


def _inserted(arrival: Arrival) -> list[int]:
    """Store an event unless it is known, or starts a process under a taken key. Return the numbers of its rows."""
    rows, numbers = arrival.rows, list[int]()
    which = _is_new(rows[0])
    # Another event with the same id may come at the same moment, and share only some of the rows.
    whole = len(rows) if len(rows) > 1 else None
    stored = events.insert_if(rows, which, numbers, whole)
    batch = Batch([stored])
    if arrival.reactions:
        # Before the event: SQLite runs one statement after the other, and the event would be known.
        batch = Batch([commands.insert_if(arrival.reactions, which, []), stored])
    try:
        if connection.in_atomic_block:
            with transaction.atomic():
                batch.send()
        else:
            batch.commit()
    except LeaseLost:
        return []
    return numbers


def _is_new(first: InboxEvent) -> Condition:
    """The condition that no event has this id and, if it starts a process, that no live process has its key."""
    sql = f" AND NOT EXISTS (SELECT 1 FROM {events.name} WHERE source = %s AND event_id = %s)"  # noqa: S608  # names are the models'
    if not (first.starts and first.correlation_key):
        return Condition(sql, (first.source, first.event_id))
    sql += (
        f" AND NOT EXISTS (SELECT 1 FROM {instances.name} WHERE name = %s AND correlation_key = %s"  # noqa: S608  # names are the models'
        " AND finished_at IS NULL AND NOT (correlation_key = ''))"
    )
    key = first.target, first.correlation_key
    return Condition(sql, (first.source, first.event_id, *key))


class Storage:
    """Stores many events in their order, up to MANY or MUCH of them by one statement.

    `receipts` has those of the events that are stored so far.

    Args:
        whole: whether the caller stores all or none. Then it waits for other senders itself, after it has rolled back
            all locks, and `arrivals` has all events.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.receipts: list[Receipt] = []
        self.arrivals: list[Arrival] = []
        self._whole = whole
        self._waiting: list[Arrival] = []
        self._first: dict[Name, Arrival] = {}
        """The first waiting event of each name; later ones of the name are the same."""
        self._size = 0

    def add(self, arrival: Arrival) -> None:
        """Take one more event, and store those before it if they are enough.

        Raises:
            EventRefused: one of them cannot be stored.
        """
        many = len(self._waiting) == MANY or self._size + arrival.size > MUCH
        if many or not self._is_same(arrival):
            self.finish()
        self._waiting.append(arrival)
        if arrival.name not in self._first:
            self._first[arrival.name] = arrival
            self._size += arrival.size
            if self._whole:
                self.arrivals.append(arrival)

    def _is_same(self, arrival: Arrival) -> bool:
        """Whether it is the same as the waiting event of its name, if there is one."""
        known = self._first.get(arrival.name, arrival)
        return known.rows[0].body_hash == arrival.rows[0].body_hash

    def finish(self) -> None:
        """Store the waiting events.

        Raises:
            EventRefused: one of them cannot be stored.
        """
        arrivals = self._waiting
        self._waiting, self._first, self._size = [], {}, 0
        if len(arrivals) > 1:
            try:
                stored = stored_together if self._whole else _stored_in_turn
                self.receipts += stored(arrivals)
            except ConflictingEvent:
                pass  # storing them one by one shows which
            else:
                return
        for arrival in arrivals:
            try:
                self.receipts.append(store_event(arrival))
            except ProcessionError as error:
                raise EventRefused(self.receipts, error) from error


def check_starts(arrivals: Sequence[Arrival]) -> None:
    """Check events that start processes before they are stored together.

    Raises:
        KeyTaken: a live process has the key of one of them.
        ConflictingEvent: two events have the same id.
    """
    known = _known(arrival.name for arrival in arrivals)
    first: dict[Name, Arrival] = {}
    for arrival in arrivals:
        before = first.setdefault(arrival.name, arrival)
        if before.rows[0].body_hash != arrival.rows[0].body_hash:
            raise _conflict(arrival.name)
    new = (one.rows[0] for name, one in first.items() if name not in known)
    keys = group_by_key((row.target, row.correlation_key) for row in new)
    for name, same in keys.items():
        instances.check_free(name, *same)


def _stored_in_turn(arrivals: Sequence[Arrival]) -> list[Receipt]:
    """Store events together; after a deadlock with another sender of the same events, wait and try again.

    Raises:
        ConflictingEvent: one of the ids was used before for another event, or is used so at this moment.
    """
    for _ in range(TURNS):
        try:
            return stored_together(arrivals)
        except OperationalError as error:
            if not was_deadlock(error):
                raise
        for arrival in arrivals:
            wait_for_others(arrival)
    return stored_together(arrivals)


def was_deadlock(error: Exception) -> bool:
    """Whether the database rolled this transaction back because of a deadlock."""
    return getattr(error.__cause__, "sqlstate", "") == DEADLOCK


def concerns_all(error: Exception) -> bool:
    """Whether an error is about the database at this moment, and not about one of several messages.

    A deadlock is none, except in the caller's transaction: other senders had locked the same rows in another order.
    """
    again = not connection.in_atomic_block and was_deadlock(error)
    return passes(error) and not again


def wait_for_others(arrival: Arrival) -> None:
    """Wait until no other transaction is storing this event, without holding a lock."""
    with transaction.atomic():
        _inserted(arrival)
        transaction.set_rollback(True)


def stored_together(arrivals: Sequence[Arrival]) -> list[Receipt]:
    """Store events by one statement, all or none; those of one id are the same.

    Raises:
        ConflictingEvent: one of the ids was used before for another event, or is used so at this moment.
    """
    first: dict[Name, Arrival] = {}
    for arrival in arrivals:
        first.setdefault(arrival.name, arrival)
    new = list(first.values())
    rows = [row for arrival in new for row in arrival.rows]
    numbers: list[int] = []
    with transaction.atomic():
        send([events.insert_if(rows, NOT_KNOWN, numbers)])
        receipts: dict[Name, Receipt] = {}
        if len(numbers) < len(rows):
            receipts = _repeats(new, _before(new, set(numbers)))
            new = [arrival for arrival in new if arrival.name not in receipts]
        receipts |= _new_receipts(new, numbers)
        if reactions := [row for arrival in new for row in arrival.reactions]:
            put_in_order(reactions)
            send([commands.insert_if(reactions, ALL, [])])
        if len(first) < len(arrivals):
            _count_again(arrivals)
        _ring(new)
    return [
        receipts[arrival.name]
        if arrival is first[arrival.name]
        else replace(receipts[arrival.name], repeated=True)
        for arrival in arrivals
    ]


def put_in_order(reactions: Sequence[IssuedCommand]) -> None:
    """Let reactions that are stored together, at one moment, follow each other in the order of their events."""
    for place, one in enumerate(reactions):
        one.wake_at = one.issued_at = one.issued_at + timedelta(microseconds=place)


def _new_receipts(
    arrivals: Iterable[Arrival], numbers: Iterable[int]
) -> Iterator[tuple[Name, Receipt]]:
    """The receipts of new events, whose rows have these numbers in order."""
    left = iter(sorted(numbers))
    for one in arrivals:
        yield one.name, one.receipt(min(next(left) for _ in one.rows))


def _count_again(arrivals: Iterable[Arrival]) -> None:
    """Count the repeats among events that come together; their rows are new, or locked."""
    counts = Counter(arrival.name for arrival in arrivals)
    again = group_by_key((times - 1, name) for name, times in counts.items())
    for number, names in again.items():
        if number:
            rows = InboxEvent.objects.filter(_is_row_of(names))
            rows.update(repeats=F("repeats") + number)


def _ring(arrivals: Iterable[Arrival]) -> None:
    work = [work for each in arrivals for work in (*each.rows, *each.reactions)]
    for queue in sorted({one.queue for one in work}):
        wake_queue_after_commit(queue)


def _before(arrivals: Sequence[Arrival], new: Collection[int]) -> KnownEvents:
    """The rows of those events that were stored before.

    Raises:
        ConflictingEvent: an event has both new rows and earlier ones.
    """
    known = _known(arrival.name for arrival in arrivals)
    for name, rows in known.items():
        if len({row.pk in new for row in rows}) > 1:
            raise _conflict(name)
    return {name: rows for name, rows in known.items() if rows[0].pk not in new}


def _known(names: Iterable[Name]) -> KnownEvents:
    """The stored rows of events, each event's in their order."""
    rows = InboxEvent.objects.filter(_is_row_of(names)).defer("body").order_by("id")
    return group_by_key(((row.source, row.event_id), row) for row in rows)


def _is_row_of(names: Iterable[Name]) -> Q:
    """The condition that a row belongs to one of these events."""
    wanted = Q()
    for source, of_source in group_by_key(names).items():
        wanted |= Q(source=source, event_id__in=of_source)
    return wanted


def _repeats(arrivals: Iterable[Arrival], known: KnownEvents) -> dict[Name, Receipt]:
    """Count repeats of known events. Return their first receipts again.

    Raises:
        ConflictingEvent: an event has another content than the known one.
    """
    receipts = {}
    for arrival in arrivals:
        rows = known.get(arrival.name)
        if rows is None:
            continue
        sent, address = arrival.rows[0], (arrival.process_id, arrival.key)
        if not all(is_repeat(row, sent, *address) for row in rows):
            raise _conflict(arrival.name)
        first = rows[0]
        receipts[arrival.name] = Receipt(
            first.pk, first.process_id, first.verdict, repeated=True
        )
    numbers = [row.pk for rows in known.values() for row in rows]
    counted = InboxEvent.objects.filter(pk__in=numbers)
    # Every sender locks in this order: another order could be a deadlock.
    if connection.in_atomic_block:
        list(counted.order_by("pk").select_for_update().values_list("pk"))
    counted.update(repeats=F("repeats") + 1)
    return receipts


def _conflict(name: Name) -> ConflictingEvent:
    source, id = name
    return ConflictingEvent(
        "%(source)s sent event id %(id)s before with another content; use a new id for a new event",
        source,
        repr(id),
    )
