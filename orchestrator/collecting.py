"""Values put together by what they have in common, and what was used last."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def gathered(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """The values of each key in their order; none for a key that has none."""
    found = defaultdict[K, list[V]](list)
    for key, value in pairs:
        found[key].append(value)
    return found


class Latest(Generic[K, V]):
    """What was used last, as much of it as there is room for. Threads may share it.

    Args:
        room: how much is kept at most, in the unit of the sizes.
        size: of one that is kept.
    """

    def __init__(self, room: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self.room, self._size = room, size
        self.taken = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What is kept under a key, if anything is."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: K, value: V) -> None:
        """Keeps one, and drops what was not used for longest; this one stays, however large it is."""
        size = self._size(value)
        with self._lock:
            self.taken += size - self._kept.pop(key, (value, 0))[1]
            self._kept[key] = value, size
            while self.taken > self.room and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self.taken -= freed

    def drop(self, key: K) -> None:
        """Keeps what is under a key no longer."""
        with self._lock:
            if key in self._kept:
                self.taken -= self._kept.pop(key)[1]

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._kept.clear()
            self.taken = 0
