"""Grouping values by a key, and a cache of the values used last."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def group_by_key(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """Return the values of each key in their order; a key without values has an empty list."""
    found = defaultdict[K, list[V]](list)
    for key, value in pairs:
        found[key].append(value)
    return found


class LruCache(Generic[K, V]):
    """A cache that drops the least recently used values when it is full. Threads may share it.

    Args:
        room: the most that it keeps, in the unit of `size`.
        size: returns the size of a value.
    """

    def __init__(self, room: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self.room, self._size = room, size
        self.taken = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Return the value of a key; None without one."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: K, value: V) -> None:
        """Store a value, and drop the least recently used ones; the new value stays, however large it is."""
        size = self._size(value)
        with self._lock:
            self.taken += size - self._kept.pop(key, (value, 0))[1]
            self._kept[key] = value, size
            while self.taken > self.room and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self.taken -= freed

    def drop(self, key: K) -> None:
        """Drop the value of a key."""
        with self._lock:
            if key in self._kept:
                self.taken -= self._kept.pop(key)[1]

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._kept.clear()
            self.taken = 0
