"""Under which conditions a step starts, so that branches which come together again are seen to be one.

A condition is a set of atoms, one of which must hold. An atom is a branch that was taken under another condition; where
one of several branches is always taken, all of them together are the condition they were taken under. It is the idea
of the program structure tree (Johnson, Pearson and Pingali, 1994) on graphs that need not be well nested.
"""

from __future__ import annotations

from collections.abc import Iterable

Condition = frozenset[int]

ALWAYS: Condition = frozenset([0])


class Conditions:
    """The atoms of one graph."""

    def __init__(self) -> None:
        self._under: list[Condition] = [frozenset()]
        """Each atom's condition under which its branch can be taken at all."""
        self._level = [0]
        self._choice = [0]
        """Each atom's choice."""
        self._size = [0]
        """Each choice's number of branches, if one of them is always taken; else 0."""

    def branches(
        self, under: Condition, count: int, *, complete: bool
    ) -> list[Condition]:
        """New conditions, one for each branch; `complete` when at least one of them is always taken."""
        first, level = len(self._under), 1 + max(self._level[atom] for atom in under)
        self._under += [under] * count
        self._level += [level] * count
        self._choice += [len(self._size)] * count
        self._size.append(count if complete else 0)
        return [frozenset([atom]) for atom in range(first, first + count)]

    def either(self, conditions: Iterable[Condition]) -> Condition:
        """The condition that holds when one of these does, in its simplest form."""
        distinct = set(conditions)
        if len(distinct) == 1:
            return distinct.pop()
        atoms = self._closed(distinct)
        if 0 in atoms:
            return ALWAYS
        lowest = min(self._level[atom] for atom in atoms)
        return frozenset(x for x in atoms if not self._implied(x, atoms, lowest))

    def _closed(self, conditions: Iterable[Condition]) -> set[int]:
        """All atoms; complete choices are replaced by what they were made under."""
        atoms: set[int] = set()
        seen: dict[int, list[int]] = {}
        waiting = [atom for condition in conditions for atom in condition]
        while waiting:
            atom = waiting.pop()
            if atom in atoms:
                continue
            atoms.add(atom)
            others = seen.setdefault(self._choice[atom], [])
            others.append(atom)
            if len(others) == self._size[self._choice[atom]]:
                atoms.difference_update(others)
                waiting += self._under[atom]
        return atoms

    def _implied(self, atom: int, atoms: set[int], lowest: int) -> bool:
        """Whether the branch is only ever taken when another of these atoms holds."""
        under = self._under[atom]
        while under:
            if under <= atoms:
                return True
            (first, *more) = under
            if more or self._level[first] < lowest:
                return False
            under = self._under[first]
        return False
