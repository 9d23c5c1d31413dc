"""Lists as files, sent while they are read, so that a slow reader keeps no query open."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from monitoring.queries.lists import Search

FORMULA = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of a cell that a spreadsheet computes: the signs, and their full-width forms."""

BEGINNING = "\ufeff"
"""The mark by which spreadsheets recognise UTF-8."""

TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}

Columns = Mapping[str, Callable[[Any], Any]]
"""The value of a row in each column, by the column's name."""


def export_list(
    request: HttpRequest,
    form: str,
    kind: str,
    columns: Columns,
    filters: Search,
    parts: Iterable[Sequence[Any]],
) -> HttpResponseBase:
    """Return a whole list as a file, whose name has the kind of rows and the time; 400 for filters with a mistake.

    Args:
        request: of the user.
        form: csv or jsonl.
        kind: the kind of rows.
        columns: the value of a row in each column, in their order.
        filters: the filters of the list.
        parts: the rows, in parts.

    Raises:
        Http404: there is no such kind of file.
    """
    if form in TYPES and filters.mistake:
        return HttpResponse(filters.mistake, "text/plain; charset=utf-8", status=400)
    name = f"{kind}-{timezone.localtime():%Y-%m-%d-%H%M%S}"
    return download(request, form, name, columns, parts)


def download(
    request: HttpRequest,
    form: str,
    name: str,
    columns: Columns,
    parts: Iterable[Sequence[Any]],
) -> StreamingHttpResponse:
    """Return a list as a file.

    Args:
        request: of the user.
        form: csv or jsonl.
        name: of the file, without its ending.
        columns: the value of a row in each column, in their order.
        parts: the rows; each part is read when the one before was sent.

    Raises:
        Http404: there is no such kind of file.
    """
    if form not in TYPES:
        raise Http404
    text = (csv_text if form == "csv" else json_lines)(columns, parts)
    # A server for ASGI would read all of it before it sent the first line.
    content = _read_async(text) if isinstance(request, ASGIRequest) else text
    return StreamingHttpResponse(
        content,
        content_type=TYPES[form],
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{form}"',
            "Cache-Control": "no-store",
        },
    )


def csv_text(columns: Columns, parts: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a table as CSV, with a header; formulas are marked as texts."""
    yield BEGINNING + _csv([[*columns]])
    for part in parts:
        yield _csv([[_cell(said(row)) for said in columns.values()] for row in part])


def json_lines(columns: Columns, parts: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a JSON object a line."""
    for part in parts:
        rows = ({name: said(row) for name, said in columns.items()} for row in part)
        lines = (
            json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False) for row in rows
        )
        yield "".join(f"{line}\n" for line in lines)


def _csv(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        encoded = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
        return encoded.strip('"') if encoded.startswith('"') else encoded
    return f"'{value}" if value.startswith(FORMULA) else value


async def _read_async(text: Iterator[str]) -> AsyncIterator[str]:
    """Yield the same text; each part is read in the request's thread after the one before was sent."""
    read = sync_to_async(partial(next, text, ""))
    while part := await read():
        yield part
