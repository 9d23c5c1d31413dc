"""How many more calls a worker may begin, and of which kinds: a kind may have a limit on its calls in flight."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable

from orchestrator.engine.work.calls import Call

FULL_SECONDS = 0.3
"""How long a worker claims no call of a kind after it had no room for one."""


class Room:
    """The calls that one worker has in flight, and the room for more.

    Args:
        begun: returns the calls in flight.
        places: returns how many more calls the worker may have.
    """

    def __init__(
        self, begun: Callable[[], Collection[Call]], places: Callable[[], int]
    ) -> None:
        self._begun, self.places = begun, places
        self._prepared: set[Call] = set()
        """Calls that are about to be in flight."""
        self._full: dict[Hashable, float] = {}
        """The kinds without room, and the monotonic time until which this worker claims none of them."""

    def taken(self, kind: Hashable) -> int:
        """Return how many calls of a kind this worker has in flight."""
        return sum(call.kind == kind for call in {*self._begun(), *self._prepared})

    def note_prepared(self, call: Call) -> None:
        """Note a call that is about to begin: it counts from now on."""
        self._prepared.add(call)

    def note_begun(self) -> None:
        """Note that every prepared call is in flight, or will not begin."""
        self._prepared.clear()

    def note_full(self, kind: Hashable) -> None:
        """Note that there is no room for a kind, because of calls in flight at this worker or at others."""
        self._full[kind] = time.monotonic() + FULL_SECONDS

    def note_end(self, call: Call) -> bool:
        """Note that a call has ended. Return whether that makes room for another call of its kind."""
        self._full.pop(call.kind, None)
        return call.most is not None

    def full(self) -> set[Hashable]:
        """Return the kinds without room."""
        now = time.monotonic()
        self._full = {kind: until for kind, until in self._full.items() if until > now}
        most = {call.kind: call.most for call in self._begun() if call.most is not None}
        taken = Counter(call.kind for call in self._begun())
        return {*self._full, *(kind for kind in most if taken[kind] >= most[kind])}
