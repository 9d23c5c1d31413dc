"""The reader of an export: line by line, as strict as for messages, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator import strict_json
from orchestrator.definition.codec import MAX_DEPTH
from orchestrator.engine.transfer.form import (
    BY_NAME,
    FORMAT,
    PARTS,
    End,
    ExportedTable,
    Head,
)
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.text import Text

LIMITS = strict_json.Limits(bytes=8 * 1024 * 1024, depth=MAX_DEPTH + 2, keys=1_000_000)
"""The limits of one line. A visit has a result, an element and saved data, each as large as a message."""

LineModel = TypeVar("LineModel", bound=BaseModel)

PLACES = {part.name: place for place, part in enumerate(PARTS)}


class ExportedRow(NamedTuple):
    """A row: its table, the values by their columns, and the values that replace columns."""

    part: ExportedTable
    values: dict[str, Any]
    beside: dict[str, Any]


class ExportFile:
    """A file with an export. It can be read once.

    Args:
        file: the open file.

    Raises:
        OperationRefused: the file is no export, or has a form that the running code does not know.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self._checksum = hashlib.sha256()
        raw, value = self._line()
        if not isinstance(value, dict) or "procession" not in value:
            raise OperationRefused(Text("this is no export of a process"))
        if value.get("format") != FORMAT:
            raise OperationRefused(
                "it has the format %(format)s, the running code reads %(known)s: import it with the version that wrote "
                "it, or export it again",
                repr(value.get("format")),
                FORMAT,
            )
        self.head = self._as(Head, raw)

    def rows(self) -> Iterator[ExportedRow]:
        """Yield the rows, in the order of the tables.

        Raises:
            OperationRefused: a line is invalid, or the file is incomplete.
        """
        place = 0
        while True:
            before = self._number, self._checksum.hexdigest()
            raw, value = self._line()
            if isinstance(value, dict) and "end" in value:
                self._check_end(self._as(End, raw), *before)
                return
            named = value.get("row") if isinstance(value, dict) else None
            part = BY_NAME.get(str(named))
            if part is None or PLACES[part.name] < place:
                raise self._refused(Text("it does not belong here"))
            place = PLACES[part.name]
            yield self._row(part, raw, value)

    def _row(self, part: ExportedTable, raw: bytes, value: Any) -> ExportedRow:
        read = self._as(part.form, raw)
        values = {name: getattr(read, name) for name in part.columns}
        # JSON values come from the strict reader, which refuses more than pydantic.
        values |= {name: value[name] for name in part.values if name in value}
        beside = {name: getattr(read, name) for name, _ in part.beside}
        return ExportedRow(part, values, beside)

    def _line(self) -> tuple[bytes, Any]:
        raw = self._file.readline(LIMITS.bytes + 1)
        self._number += 1
        if not raw.endswith(b"\n"):
            if len(raw) > LIMITS.bytes:
                raise self._refused(Text("it is too long"))
            raise self._refused(Text("the file is cut off here"))
        try:
            value = strict_json.parse(raw, LIMITS)
        except InvalidMessage as mistake:
            raise self._refused(mistake) from None
        self._checksum.update(raw)
        return raw, value

    def _as(self, form: type[LineModel], raw: bytes) -> LineModel:
        try:
            return form.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))[:100]
            raise self._refused(f"{where}: {first['msg']}") from None

    def _check_end(self, end: End, number: int, checksum: str) -> None:
        if end.end != number or end.sha256 != checksum:
            raise self._refused(
                Text("the lines before it are not those that were written")
            )
        if any(iter(partial(self._file.read, 1), b"")):
            raise self._refused(Text("more follows after it"))

    def _refused(self, why: object) -> OperationRefused:
        return OperationRefused("line %(number)s: %(why)s", self._number, why)
