"""How the exchange behaves: a few rates, changeable while it runs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self


@dataclass(frozen=True)
class Behaviour:
    """Rates are chances from 0 to 1; delays are in seconds."""

    fail: float = 0.0
    """An order is answered with HTTP 503 before it is looked at."""
    refuse: float = 0.0
    """An order is refused with HTTP 403, which trying again by itself does not mend."""
    lose: float = 0.0
    """An order is taken, but the answer says HTTP 503 all the same."""
    reject: float = 0.0
    """An order that was taken is rejected in the call back."""
    late: float = 0.0
    """A call back takes five times as long."""
    twice: float = 0.0
    """A call back is repeated, as the same message."""
    early: float = 0.0
    """A call back comes before the answer to the order it is about."""
    contradict: float = 0.0
    """A call back is followed by one that says the opposite."""
    shortest: float = 0.5
    longest: float = 3.0
    born: float = 0.0
    """Orders that begin at the exchange, per second."""

    def changed(self, values: object) -> Self:
        """The behaviour with some values changed; true and false stand for always and never.

        Raises:
            ValueError: a name or a value that does not exist, or delays that contradict each other.
        """
        if not isinstance(values, dict):
            raise ValueError("send an object of names and numbers")
        known = {field.name for field in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(sorted(known))}")
            if not isinstance(value, int | float) or not 0 <= value <= self._most(name):
                raise ValueError(
                    f"{name} must be a number from 0 to {self._most(name):g}"
                )
        after = replace(self, **{name: float(value) for name, value in values.items()})
        if after.shortest > after.longest:
            raise ValueError("shortest must not be more than longest")
        return after

    @staticmethod
    def _most(name: str) -> float:
        return {"shortest": 3600.0, "longest": 3600.0, "born": 100.0}.get(name, 1.0)
