"""What was used last, as much of it as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(Generic[K, V]):
    """What was used last, as much of it as there is room for. It has no lock of its own.

    Args:
        room: how much is kept at most, in the unit of the sizes given.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What is kept under a key, if anything is."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Keeps something of a size, and drops what was not used for longest; this one stays, however large it is."""
        self.taken += size - self._kept.pop(key, (value, 0))[1]
        self._kept[key] = value, size
        while self.taken > self.room and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self.taken -= freed

    def drop(self, key: K) -> None:
        """Keeps what is under a key no longer."""
        if key in self._kept:
            self.taken -= self._kept.pop(key)[1]

    def clear(self) -> None:
        """Drops everything."""
        self._kept.clear()
        self.taken = 0
