"""Databases for other processes: an empty one beside the one of the run, and that one over another line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Identifier


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
