"""How many more calls a worker may begin, and of which kinds: some may be in flight only so many at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable

from orchestrator.engine.claims.calls import Call

FULL_SECONDS = 0.3
"""How long no call of a kind is claimed after there was no room for one."""


class Room:
    """How many calls of each kind one worker has in flight, and whether there may be more.

    Args:
        begun: gives the calls that it has in flight.
        places: gives how many more it may have.
    """

    def __init__(
        self, begun: Callable[[], Collection[Call]], places: Callable[[], int]
    ) -> None:
        self._begun, self.places = begun, places
        self._prepared: set[Call] = set()
        """Calls that are about to be in flight."""
        self._full: dict[Hashable, float] = {}
        """The kinds for which there was no room, and until when that is taken to be so."""

    def taken(self, kind: Hashable) -> int:
        """How many of a kind are in flight here."""
        return sum(call.kind == kind for call in {*self._begun(), *self._prepared})

    def note_prepared(self, call: Call) -> None:
        """Notes a call that is about to begin: others that are prepared before it has begun count it."""
        self._prepared.add(call)

    def note_begun(self) -> None:
        """Notes that all that were prepared are in flight, or will never be."""
        self._prepared.clear()

    def note_full(self, kind: Hashable) -> None:
        """Notes that there is no room for one, because of those in flight here or elsewhere."""
        self._full[kind] = time.monotonic() + FULL_SECONDS

    def note_end(self, call: Call) -> bool:
        """Notes that a call is in flight no more; whether that makes room for another one of its kind."""
        self._full.pop(call.kind, None)
        return call.most is not None

    def full(self) -> set[Hashable]:
        """The kinds for which there is no room."""
        now = time.monotonic()
        self._full = {kind: until for kind, until in self._full.items() if until > now}
        most = {call.kind: call.most for call in self._begun() if call.most is not None}
        taken = Counter(call.kind for call in self._begun())
        return {*self._full, *(kind for kind in most if taken[kind] >= most[kind])}
