"""Writes lines into the tables: by COPY into PostgreSQL, row by row into SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection
from django.db.models import Model

from bench.seed.copies import plain_value


def reserve_ids(model: type[Model], number: int) -> Sequence[int]:
    """Reserve so many ids of a table, and return them in order."""
    table, column = model._meta.db_table, _key(model)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT nextval(name) FROM pg_get_serial_sequence(%s, %s) AS name, generate_series(1, %s)",
                [table, column, number],
            )
            return [one for (one,) in cursor.fetchall()]
        # Nobody else writes while this transaction lasts.
        cursor.execute(f"SELECT COALESCE(MAX({column}), 0) + 1 FROM {table}")  # noqa: S608  names are the model's
        first = int(cursor.fetchone()[0])
        return range(first, first + number)


def write(model: type[Model], lines: str) -> None:
    """Write the rows of one table."""
    fields = model._meta.concrete_fields
    columns = ", ".join(f'"{field.column}"' for field in fields)
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                copy.write(lines)
            return
        rows = [
            [plain_value(value) for value in line.split("\t")]
            for line in lines.removesuffix("\n").split("\n")
        ]
        marks = ", ".join(["%s"] * len(fields))
        cursor.executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608  names are the model's
            rows,
        )


def tidy(models: Iterable[type[Model]]) -> None:
    """Update the statistics of the tables."""
    with connection.cursor() as cursor:
        for model in models:
            how = "VACUUM (ANALYZE)" if connection.vendor == "postgresql" else "ANALYZE"
            cursor.execute(f"{how} {model._meta.db_table}")


def _key(model: type[Model]) -> str:
    return str(model._meta.pk.column)
