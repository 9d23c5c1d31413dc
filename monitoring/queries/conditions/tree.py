"""The tree of conditions, joined by AND and OR, and its check against values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitoring.queries.conditions.values import Value, quote

Path = tuple[str, ...]
"""The fields and places that lead to a value: ("lines", "0", "parcel")."""

PLAIN = re.compile(r'[^\s()<>=!,".]+')

OPERATORS: Mapping[str, Callable[[Any, tuple[Value, ...]], bool]] = {
    "=": lambda stored, given: given[0].equals(stored),
    "!=": lambda stored, given: not given[0].equals(stored),
    "<": lambda stored, given: given[0].order(stored) == -1,
    "<=": lambda stored, given: given[0].order(stored) in (-1, 0),
    ">": lambda stored, given: given[0].order(stored) == 1,
    ">=": lambda stored, given: given[0].order(stored) in (0, 1),
    "in": lambda stored, given: any(one.equals(stored) for one in given),
    "contains": lambda stored, given: given[0].is_in(stored),
    "exists": lambda stored, given: True,
}
"""Whether a stored value meets a condition. An absent value meets none."""


@dataclass(frozen=True)
class DataCondition:
    """One condition.

    Args:
        path: to the value in the data.
        operator: one of `OPERATORS`.
        values: the values to compare with; none for "exists", several for "in".
    """

    path: Path
    operator: str
    values: tuple[Value, ...] = ()

    def holds(self, stored: Mapping[Path, Any]) -> bool:
        """Whether the stored value meets the condition."""
        found = stored[self.path]
        return found is not None and OPERATORS[self.operator](found, self.values)

    def paths(self) -> Iterator[Path]:
        """Yield the path of the condition."""
        yield self.path

    def __str__(self) -> str:
        said = f"{format_path(self.path)} {self.operator}"
        if self.operator == "in":
            return f"{said} ({', '.join(map(str, self.values))})"
        return " ".join([said, *map(str, self.values)])


@dataclass(frozen=True)
class ConditionGroup:
    """Conditions that are joined: all must hold ("and"), or one ("or")."""

    joined: str
    parts: tuple[ConditionTree, ...]

    def holds(self, stored: Mapping[Path, Any]) -> bool:
        """Whether the stored values meet the conditions."""
        held = (part.holds(stored) for part in self.parts)
        return all(held) if self.joined == "and" else any(held)

    def paths(self) -> Iterator[Path]:
        """Yield the paths of all conditions."""
        for part in self.parts:
            yield from part.paths()

    def __str__(self) -> str:
        parts = (
            f"({part})" if isinstance(part, ConditionGroup) else str(part)
            for part in self.parts
        )
        return f" {self.joined} ".join(parts)


ConditionTree = DataCondition | ConditionGroup


def format_path(path: Path) -> str:
    """Write a path as people write it."""
    return ".".join(part if PLAIN.fullmatch(part) else quote(part) for part in path)
