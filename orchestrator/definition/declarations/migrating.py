"""Migration of processes from another version: their new steps and data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from orchestrator.definition.codec import decode, encode
from orchestrator.definition.labels import name_of
from orchestrator.definition.refusals import why_deferred, why_unnamed
from orchestrator.exceptions import InvalidMessage, NotMigrated

ChangesData = Callable[[dict[str, Any]], Any]
"""Converts the JSON values of the other version's data to the data of this version, or to its JSON values."""


@dataclass(frozen=True)
class MigratesFrom:
    """The migration from another version.

    Args:
        version: the other version.
        steps: the step of this version for each renamed step of the other version; "" for none.
        data: converts the stored data; None keeps it.
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
        """Map the steps of the other version to those of this version, without steps that have no counterpart.

        Args:
            old: the steps of the other version.
            new: the steps of this version.
            chosen: further pairs, chosen by an operator.
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
    """Declare how processes migrate from another version.

    Args:
        version: the other version.
        steps: the step of this version for each step of the other version that has another name here; None for a step
            without a counterpart.
        data: a plain function that converts the stored data, or input, to that of this version.
    """
    said = (steps or {}).items()
    named = {_name(old): "" if new is None else _name(new) for old, new in said}
    return MigratesFrom(version, named, data)


def _name(step: Any) -> str:
    """The name of a step, given as text, as an enumeration member or as a workflow's step."""
    if isinstance(step, str):
        return str(step)
    return str(getattr(step, "name", "") or name_of(step))


def migration_mistakes(
    rows: Any, version: int, steps: Sequence[str] | None, *, one_to_one: bool
) -> Iterator[str]:
    """Yield the mistakes in the migrations of a definition.

    Args:
        rows: the declared migrations.
        version: the version of the definition.
        steps: the steps in which its processes can be; None if the graph is made from the input.
        one_to_one: whether two steps must not become the same step.
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
        yield from (f"{said}: {reason}" for reason in _of_version(row, version))
        if row.version in seen:
            yield f"{said} is said twice"
        seen.add(row.version)
        yield from (f"{said}: {reason}" for reason in _of_row(row, steps, one_to_one))


def _of_version(row: MigratesFrom, own: int) -> Iterator[str]:
    if type(row.version) is not int or row.version < 1:
        yield "the version must be a whole number from 1"
    elif row.version == own:
        yield "that is its own version"


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
        if reason := why_unnamed(row.data, "what makes the data"):
            yield reason
        elif reason := why_deferred(row.data):
            yield f"{name_of(row.data)} {reason}: it is a plain function"


def migrate_data(form: type[Any], body: Mapping[str, Any], row: MigratesFrom) -> Any:
    """Convert stored data to this version, and decode it as strictly as a message.

    Args:
        form: the data class of this version.
        body: the data of the other version, as JSON values.
        row: the migration from the other version.

    Raises:
        NotMigrated: the converted data does not fit the data class.
        Exception: the conversion function failed.
    """
    made = row.data(dict(body)) if row.data is not None else dict(body)
    try:
        return decode(form, encode(made) if isinstance(made, form) else made)
    except InvalidMessage as mistake:
        raise NotMigrated(
            "its data is not of the form of the other version: %(why)s", mistake
        ) from None
