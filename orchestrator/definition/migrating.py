"""Migration of processes from another version: the steps and the data that they get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from orchestrator.definition.codec import decode, encode
from orchestrator.definition.invalid import gives_later, unnamed
from orchestrator.definition.words import name_of
from orchestrator.exceptions import InvalidMessage, NotMigrated

ChangesData = Callable[[dict[str, Any]], Any]
"""Takes the stored data of the other version as JSON values; returns the data of this version, or its JSON values."""


@dataclass(frozen=True)
class MigratesFrom:
    """The migration from another version.

    Args:
        version: the other version.
        steps: the steps of this version by those of the other, where they are not of the same name; "" for none.
        data: what the data becomes; it stays as it is without one.
    """

    version: int
    steps: Mapping[str, str] = field(default_factory=dict)
    data: ChangesData | None = None

    def mapping(
        self,
        old: Iterable[str],
        new: Iterable[str],
        chosen: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Maps the steps of the other version to those of this one. Steps without a counterpart are left out.

        Args:
            old: the steps of the other version.
            new: those of this one.
            chosen: what a person says beyond what is declared.
        """
        known = set(new)
        said = {**self.steps, **(chosen or {})}
        wanted = ((name, said.get(name, name)) for name in old)
        return {name: target for name, target in wanted if target in known}


def migrates_from(
    version: int,
    *,
    steps: Mapping[Any, Any] | None = None,
    data: ChangesData | None = None,
) -> MigratesFrom:
    """Declares how processes migrate from another version.

    Args:
        version: the other version.
        steps: the steps of this version by the names of those of the other, where these are not the same; None for a
            step that has no other.
        data: a plain function that makes this version's data, or input, of the stored one.
    """
    said = (steps or {}).items()
    named = {_name(old): "" if new is None else _name(new) for old, new in said}
    return MigratesFrom(version, named, data)


def _name(step: Any) -> str:
    """The name of a step, given as text, as an enumeration member or as a workflow's step."""
    if isinstance(step, str):
        return str(step)
    return str(getattr(step, "name", "") or name_of(step))


def reasons(
    rows: Any, version: int, steps: Sequence[str] | None, *, one_to_one: bool
) -> Iterator[str]:
    """Mistakes in the migrations of a definition.

    Args:
        rows: what it declares.
        version: its own.
        steps: in which its processes can be; None where they are known only when a process starts.
        one_to_one: whether no two steps may become one.
    """
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        yield "migrations holds rows: migrations = (migrates_from(1), ...)"
        return
    seen: set[int] = set()
    for row in rows:
        if not isinstance(row, MigratesFrom):
            yield f"migrations holds what migrates_from(...) gives, and {row!r} is none"
            continue
        said = f"migrates_from({row.version!r})"
        if type(row.version) is not int or row.version < 1:
            yield f"{said}: the version must be a whole number from 1"
        elif row.version == version:
            yield f"{said}: that is its own version"
        elif row.version in seen:
            yield f"{said} is said twice"
        seen.add(row.version)
        yield from (f"{said}: {reason}" for reason in _of_row(row, steps, one_to_one))


def _of_row(
    row: MigratesFrom, steps: Sequence[str] | None, one_to_one: bool
) -> Iterator[str]:
    targets = [target for target in row.steps.values() if target]
    for target in targets:
        if steps is not None and target not in steps:
            near = get_close_matches(target, steps, n=1)
            meant = f": did you mean {near[0]!r}?" if near else ""
            yield f"no process can be in {target!r}{meant}"
        if one_to_one and targets.count(target) > 1:
            yield f"two steps would become {target}"
    if row.data is not None:
        if reason := unnamed(row.data, "what makes the data"):
            yield reason
        elif reason := gives_later(row.data):
            yield f"{name_of(row.data)} {reason}: it is a plain function"


def carried_data(form: type[Any], body: Mapping[str, Any], row: MigratesFrom) -> Any:
    """Makes the data of this version from stored data, and checks it like data from outside.

    Args:
        form: as this version declares it.
        body: the data of the other version, as JSON values.
        row: how processes come over from there.

    Raises:
        NotMigrated: it is not of the declared form.
        Exception: whatever the function raises that makes it.
    """
    made = row.data(dict(body)) if row.data is not None else dict(body)
    try:
        return decode(form, encode(made) if isinstance(made, form) else made)
    except InvalidMessage as mistake:
        raise NotMigrated(
            "its data is not of the form of the other version: %(why)s", mistake
        ) from None
