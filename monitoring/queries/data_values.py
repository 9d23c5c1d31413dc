"""Values at paths in the data of processes, the same on every database.

The database returns only these values, since the data may be large. List indexes are looked up here: only the value
shows whether digits in a path are an index or the name of a field.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db.models import F, Func, QuerySet, TextField

from monitoring.queries.conditions import ConditionTree, Path
from orchestrator import secret_names
from orchestrator.definition.secrets import Secrets, mask_fields
from orchestrator.models import Definition

VALUES = json.JSONDecoder(parse_float=Decimal)

LONGEST = 9
"""The maximum number of digits of a list index."""


class AtPaths(Func):
    """The values at some paths of a JSON column, as the text of a JSON list; null for a missing value."""

    def __init__(self, column: str, paths: Sequence[Path]) -> None:
        super().__init__(F(column), output_field=TextField())
        self.paths = paths

    def as_sql(
        self,
        compiler: Any,
        connection: Any,
        function: Any = None,
        template: Any = None,
        arg_joiner: Any = None,
        **context: Any,
    ) -> Any:
        """Compile for SQLite; for a single path it would return the value without its type."""
        [column] = self.source_expressions
        sql, params = compiler.compile(column)
        places = [_place(path) for path in (*self.paths, ("",))]
        marks = ", ".join(["%s"] * len(places))
        return f"JSON_EXTRACT({sql}, {marks})", [*params, *places]

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        [column] = self.source_expressions
        sql, params = compiler.compile(column)
        values = ", ".join([f"{sql} #> %s::text[]"] * len(self.paths))
        given = [one for path in self.paths for one in (*params, list(path))]
        return f"JSONB_BUILD_ARRAY({values})::text", given


def _place(path: Path) -> str:
    return "$" + "".join(f'."{part}"' for part in path)


def matching_keys(rows: QuerySet[Any], where: ConditionTree) -> list[UUID]:
    """Return the keys of the processes whose data meets the conditions.

    Secret fields have no value for any reader, since counts would reveal them.
    """
    paths = list(dict.fromkeys(where.paths()))
    asked = list(dict.fromkeys(map(_plain_part, paths)))
    # Without an order: each row is checked by itself.
    columns = ("pk", "name", "definition_id", AtPaths("data", asked))
    looked_at = list(rows.order_by().values_list(*columns))
    hidden = _secrets({(name, definition) for _, name, definition, _ in looked_at})
    ways = {names: _parts(paths, names) for names in set(hidden.values())}
    found: list[UUID] = []
    for pk, name, definition, text in looked_at:
        names = hidden[name, definition]
        values = dict(zip(asked, VALUES.decode(text), strict=False))
        stored = {
            path: mask_fields(_value_at(values[way], path[len(way) :]), names)
            if way is not None
            else None
            for path, way in ways[names].items()
        }
        if where.holds(stored):
            found.append(pk)
    return found


def _secrets(of: Collection[tuple[str, int]]) -> dict[tuple[str, int], frozenset[str]]:
    """Return the secret names of definitions, by their name and key."""
    rows = Definition.objects.filter(pk__in={definition for _, definition in of})
    stored = dict(rows.values_list("pk", "secrets"))
    in_code = {name: secret_names.code_secrets(name).names for name, _ in of}
    return {
        (name, definition): in_code[name]
        | Secrets.from_json(stored.get(definition)).names
        for name, definition in of
    }


def _parts(paths: Iterable[Path], hidden: frozenset[str]) -> dict[Path, Path | None]:
    """Return for each path the part that the database reads; None for a secret path."""
    return {
        path: None if is_hidden(path, hidden) else _plain_part(path) for path in paths
    }


def is_hidden(path: Path, hidden: frozenset[str]) -> bool:
    """Whether a path contains a secret name, also with escapes, which a database may decode."""
    return not hidden.isdisjoint({*path, *map(_unescape, path)})


def _unescape(part: str) -> str:
    if "\\" not in part:
        return part
    try:
        return str(json.loads(f'"{part}"'))
    except ValueError:
        return part


def _plain_part(path: Path) -> Path:
    """Return the beginning of a path that every database reads alike."""
    return tuple(takewhile(_is_plain, path))


def _is_plain(part: str) -> bool:
    """Whether every database reads it as the name of a field: SQLite compares with stored escapes."""
    return part.isascii() and not (part.isdigit() or '"' in part)


def _value_at(value: Any, rest: Path) -> Any:
    for part in rest:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and len(part) < LONGEST:
            value = next(iter(value[int(part) :]), None)
        else:
            return None
    return value
