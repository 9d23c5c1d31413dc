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

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
}

Columns = Mapping[str, Callable[[Any], Any]]
"""The value of a row in each column, by the column's name."""


def exported(
    request: HttpRequest,
    form: str,
    kind: str,
    columns: Columns,
    filters: Search,
    parts: Iterable[Sequence[Any]],
) -> HttpResponseBase:
    """All that a list has as a file, named by what it is and the moment; 404 for what is no kind of file.

    Args:
        request: whoever wants it.
        form: csv or jsonl.
        kind: of what it is.
        columns: what a row says in each, in their order.
        filters: what the list is narrowed to; it must be one that can be understood.
        parts: its rows.
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
    """A list as a file.

    Args:
        request: whoever wants it.
        form: csv or jsonl.
        name: of the file, without its ending.
        columns: what a row says in each, in their order.
        parts: its rows; each part is read when the one before has been taken.

    Raises:
        Http404: there is no such kind of file.
    """
    if form not in TYPES:
        raise Http404
    text = (csv_text if form == "csv" else json_lines)(columns, parts)
    # A server for ASGI would read all of it before it sent the first line.
    content = _taken(text) if isinstance(request, ASGIRequest) else text
    return StreamingHttpResponse(
        content,
        content_type=TYPES[form],
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{form}"',
            "Cache-Control": "no-store",
        },
    )


def csv_text(columns: Columns, parts: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Lines of a table, with a header; formulas are marked as texts."""
    yield BEGINNING + _csv([[*columns]])
    for part in parts:
        yield _csv([[_cell(said(row)) for said in columns.values()] for row in part])


def json_lines(columns: Columns, parts: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A JSON object a line."""
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


async def _taken(text: Iterator[str]) -> AsyncIterator[str]:
    """The same text; each part is read in the request's thread after the one before was sent."""
    read = sync_to_async(partial(next, text, ""))
    while part := await read():
        yield part
