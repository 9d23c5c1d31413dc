"""Databases for other processes: an empty one beside the one of the run, and that one over another line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Identifier

NEEDS_SERVER = pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite is in each process: there is no server, no session and no line to it",
)


def address_of_server() -> tuple[str, int]:
    """Return where this process reaches PostgreSQL: a host, or the folder of its socket, and a port."""
    params = connection.get_connection_params()
    return params.get("host") or "127.0.0.1", int(params.get("port") or 5432)


def analyze() -> None:
    """Update the statistics of this database's tables.

    ANALYZE without names would also lock the catalogs that all databases of a server share.
    """
    named = ""
    if connection.vendor == "postgresql":
        tables = connection.introspection.django_table_names(only_existing=True)
        named = ", ".join(map(connection.ops.quote_name, tables))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {named}")


@contextmanager
def another_database(name: str) -> Iterator[str]:
    """Give the address of a new database, of the same kind as the run's own; it is gone afterwards.

    Args:
        name: tells it apart from others of the same run.
    """
    own = os.environ.get("DATABASE_URL", "")
    if not own:
        # It is in the run's temporary folder, and goes with it.
        yield f"sqlite:///{settings.DATA_DIR / name}.sqlite3"
        return
    parts = urlsplit(own)
    database = Identifier(f"{parts.path.removeprefix('/')}_{name}")
    with psycopg.connect(
        parts._replace(path="/postgres").geturl(), autocommit=True
    ) as server:
        server.execute(SQL("CREATE DATABASE {}").format(database))
        try:
            yield parts._replace(path=f"{parts.path}_{name}").geturl()
        finally:
            server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(database))


def led_over(port: int) -> str:
    """Return the address of the run's database by a line that listens at a port here, readable on its way."""
    url = urlsplit(os.environ["DATABASE_URL"])
    user = url.netloc.rpartition("@")[0]
    plain = "sslmode=disable&gssencmode=disable"
    return url._replace(netloc=f"{user}@127.0.0.1:{port}", query=plain).geturl()


def close_in_mid_statement(connection: BaseDatabaseWrapper) -> None:
    """Close a connection that was cut off while it waited for an answer: no later test could ask it anything."""
    under = connection.connection
    if not isinstance(under, psycopg.Connection):
        return
    if under.info.transaction_status == TransactionStatus.ACTIVE:
        connection.close()
