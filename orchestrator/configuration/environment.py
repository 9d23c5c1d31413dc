"""Parts of the bundled project's settings: data folder, secrets, and Django's settings of a database address."""

import base64
import fcntl
import hashlib
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from orchestrator.configuration.conf import SettingRefused

# A unix socket's path has room for 104 bytes on macOS and 108 on Linux, its end included.
LONGEST_SOCKET_PATH = 100

SQLITE_OPTIONS = {
    # A transaction that reads first and writes later would fail at once when another one wrote in between.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: an acknowledged commit survives a power failure.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}

# How soon the system gives a lost connection up: it probes an idle one, and closes one whose packets the server does
# not acknowledge.
POSTGRES_KEEPALIVE = {
    "connect_timeout": 5,  # seconds
    "tcp_user_timeout": 8000,  # milliseconds
    "keepalives_idle": 3,  # seconds
    "keepalives_interval": 2,  # seconds
    "keepalives_count": 3,
}

# In milliseconds. A stopped worker must not hold or wait for locks endlessly, and the statement of a killed worker must
# end.
POSTGRES_LIMITS = {
    "idle_in_transaction_session_timeout": 5000,
    "lock_timeout": 5000,
    "statement_timeout": 300_000,
}

# PostgreSQL compiles a statement (JIT) if it expects many rows. For one that reads a thousand rows of millions that
# takes 0.2 s, ten times as long as the statement.
POSTGRES_WITHOUT_JIT = {"jit": "off"}


def data_folder(path: Path) -> Path:
    """Return the folder `path`; make it, for its owner alone, if it does not exist.

    Raises:
        SettingRefused: it cannot be made, or is read-only.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingRefused(
            f"Cannot make the data folder {path}: {error.strerror}. PROCESSION_DATA_DIR names another."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise SettingRefused(
            f"Cannot write to the data folder {path}: it is read-only. PROCESSION_DATA_DIR names another."
        )
    return path


def has_examples(folder: Path, *, asked: bool) -> bool:
    """Return whether the examples belong to the data in `folder`; once `asked` for, they stay with it.

    Their processes in the database need their code.
    """
    mark = folder / "examples"
    if asked:
        mark.touch()
    return mark.exists()


def generated_secret(path: Path, prefix: str = "") -> str:
    """Return the secret in the file `path`; the first caller generates it, and its owner alone can read the file.

    Raises:
        SettingRefused: the file cannot be read, or made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingRefused(f"Cannot write {path}: {error.strerror}.") from None
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # web and workers may start at the same moment
        secret = file.read().strip()
        if not secret:
            secret = prefix + base64.b64encode(secrets.token_bytes(48)).decode()
            file.write(secret)
        return secret


def socket_path(data_dir: Path) -> Path:
    """Return the path of the embedded Valkey's socket: in the data folder, or in /tmp if it is too long there."""
    path = data_dir / "valkey.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"procession-{os.getuid()}-{name}" / path.name


def socket_url(path: Path) -> str:
    """Return the address of a Redis or Valkey server that listens at the unix socket `path`."""
    return f"unix://{quote(str(path))}?db=0"


def split_database_address(url: str) -> SplitResult:
    """Split the address of a database; the parts of an empty address are empty.

    Raises:
        ValueError: it is no address of a SQLite or PostgreSQL database.
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            usable = not parts.netloc and len(parts.path) > 1
        case "postgres" | "postgresql":
            query = dict(parse_qsl(parts.query))
            named = len(parts.path) > 1 or "service" in query
            threshold = query.get("prepare_threshold", "0").isdecimal()
            pooler = query.get("pgbouncer", "true") == "true"
            usable = named and threshold and pooler
            usable = usable and parts.port != 0  # which raises ValueError too
        case _:
            usable = not url
    if not usable or parts.fragment:
        raise ValueError("neither a SQLite nor a PostgreSQL database's address")
    return parts


def database_settings(url: str, data_dir: Path, *, web: bool) -> dict[str, Any]:
    """Return Django's settings of the database at `url`; empty means SQLite in the data folder.

    Args:
        web: whether the connections serve web requests; they come from a pool where that is possible.

    Raises:
        ValueError: it is no address of a SQLite or PostgreSQL database.
    """
    parts = split_database_address(url)
    if not parts.scheme:
        return sqlite_settings(data_dir / "db.sqlite3")
    if parts.scheme == "sqlite":
        # sqlite:///folder/file is relative, sqlite:////folder/file absolute, as in other libraries.
        return sqlite_settings(Path(unquote(parts.path).removeprefix("/")).absolute())
    return postgres_settings(parts, web=web)


def sqlite_settings(path: Path) -> dict[str, Any]:
    """Return Django's settings of the SQLite database in the file `path`."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": SQLITE_OPTIONS,
        # Tests use a file, so that workers and web server of the test can open it too.
        "TEST": {"NAME": str(path.with_name(f"test_{path.name}"))},
    }


def postgres_settings(parts: SplitResult, *, web: bool) -> dict[str, Any]:
    """Return Django's settings of the PostgreSQL database at the split address `parts`.

    Through PgBouncer (`?pgbouncer=true`) each transaction may have another session, so the limits are those of the
    role. Statements are prepared only if the address has a `prepare_threshold`: only a newer PgBouncer, configured for
    it, knows which session has them.
    """
    query: dict[str, Any] = dict(parse_qsl(parts.query))
    pgbouncer = bool(query.pop("pgbouncer", None))
    # ?host= takes the folder of a unix socket, as psql does.
    host = query.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        # A worker keeps its one connection. Each web request has a thread of its own, so the web server has a pool;
        # workers have none, because forked children must not share one.
        "CONN_MAX_AGE": 0 if web else None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": pgbouncer,
        "OPTIONS": _postgres_options(query, pgbouncer=pgbouncer, web=web),
    }


def _postgres_options(
    query: dict[str, Any], *, pgbouncer: bool, web: bool
) -> dict[str, Any]:
    """Return psycopg's options; those of the address take precedence."""
    # PostgreSQL plans the statements of every step once per connection.
    threshold = query.pop("prepare_threshold", None if pgbouncer else 2)
    return {
        "prepare_threshold": None if threshold is None else int(threshold),
        **({"pool": {"min_size": 1, "max_size": 16}} if web else {}),
        **with_limits(query, sessions=not pgbouncer),
    }


def with_limits(options: Mapping[str, Any], *, sessions: bool = True) -> dict[str, Any]:
    """Return options of PostgreSQL connections with limits on waiting and running; those given take precedence.

    Args:
        sessions: whether a connection keeps its session, which can have limits; otherwise the role must have them.
    """
    found = {**POSTGRES_KEEPALIVE, **options}
    if sessions:
        session = str(options.get("options", ""))
        own = (
            f"-c {name}={value}"
            for name, value in {**POSTGRES_LIMITS, **POSTGRES_WITHOUT_JIT}.items()
            if f"{name}=" not in session
        )
        found["options"] = " ".join([session, *own]).strip()
    return found
