"""What Django's settings are made of: the data folder and what is in it, and the database's address taken apart."""

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

from orchestrator.conf import SettingRefused

# A unix socket's path has room for 104 bytes on macOS and 108 on Linux, its end included.
LONGEST_SOCKET_PATH = 100

SQLITE_OPTIONS = {
    # A transaction that reads first and writes later would fail at once when another one wrote in between.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: what was acknowledged survives a power failure.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}

# How soon it is noticed that nobody is there at the other end: the system asks a quiet line for a sign of life, and
# gives one up on which nothing is acknowledged.
POSTGRES_LINE = {
    "connect_timeout": 5,  # seconds
    "tcp_user_timeout": 8000,  # milliseconds
    "keepalives_idle": 3,  # seconds
    "keepalives_interval": 2,  # seconds
    "keepalives_count": 3,
}

# In milliseconds. A worker that stands still inside a transaction must not hold its rows, or wait for another's, for
# ever; nor must a statement go on for ever whose worker was killed.
POSTGRES_LIMITS = {
    "idle_in_transaction_session_timeout": 5000,
    "lock_timeout": 5000,
    "statement_timeout": 300_000,
}

# A statement that looks at a thousand rows of a table of millions may be expected to look at more, and is then compiled
# first (JIT): that takes 0.2 s, ten times as long as the statement.
POSTGRES_UNCOMPILED = {"jit": "off"}


def data_folder(path: Path) -> Path:
    """Return `path` as a folder that exists and can be written to; a new one belongs to its owner alone.

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

    Processes of theirs may live there, which would need a person if their code were gone.
    """
    mark = folder / "examples"
    if asked:
        mark.touch()
    return mark.exists()


def generated_secret(path: Path, prefix: str = "") -> str:
    """Return the secret kept in the file `path`; the first caller makes it up, readable by its owner alone.

    Raises:
        SettingRefused: the file cannot be read, or made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingRefused(f"Cannot write {path}: {error.strerror}.") from None
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # web and workers may all be the first at once
        secret = file.read().strip()
        if not secret:
            secret = prefix + base64.b64encode(secrets.token_bytes(48)).decode()
            file.write(secret)
        return secret


def socket_path(data_dir: Path) -> Path:
    """Return where the embedded Valkey listens: in the data folder, or nearer to the root if that path is too long."""
    path = data_dir / "valkey.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"procession-{os.getuid()}-{name}" / path.name


def socket_url(path: Path) -> str:
    """Return the address of a Redis or Valkey server that listens at the unix socket `path`."""
    return f"unix://{quote(str(path))}?db=0"


def database_parts(url: str) -> SplitResult:
    """Return the split address `url` of a database; of "" nothing but empty parts.

    Raises:
        ValueError: it is not one of a SQLite or PostgreSQL database.
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


def database(url: str, data_dir: Path, *, web: bool) -> dict[str, Any]:
    """Return Django's settings of the database at `url`; empty means SQLite in the data folder.

    Args:
        web: the connections serve requests, each in a thread of its own, and are pooled where that is possible.

    Raises:
        ValueError: the address is not one of a SQLite or PostgreSQL database.
    """
    parts = database_parts(url)
    if not parts.scheme:
        return sqlite(data_dir / "db.sqlite3")
    if parts.scheme == "sqlite":
        # sqlite:///folder/file is relative, sqlite:////folder/file absolute, as in other libraries.
        return sqlite(Path(unquote(parts.path).removeprefix("/")).absolute())
    return postgres(parts, web=web)


def sqlite(path: Path) -> dict[str, Any]:
    """Return Django's settings of the SQLite database in the file `path`."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": SQLITE_OPTIONS,
        # Tests use a file, so that workers and web server of the test can open it too.
        "TEST": {"NAME": str(path.with_name(f"test_{path.name}"))},
    }


def postgres(parts: SplitResult, *, web: bool) -> dict[str, Any]:
    """Return Django's settings of the PostgreSQL database at the split address `parts`.

    Through a PgBouncer (`?pgbouncer=true`) each transaction has another session, so nothing lives as long as one. The
    limits are the role's then, and statements are prepared only if the address says when (`prepare_threshold`): only a
    newer PgBouncer that was told to knows on which sessions they are.
    """
    query: dict[str, Any] = dict(parse_qsl(parts.query))
    pgbouncer = bool(query.pop("pgbouncer", None))
    # What the engine sends for every step is planned once a connection.
    threshold = query.pop("prepare_threshold", None if pgbouncer else 2)
    # ?host= takes the folder of a unix socket, as psql does.
    host = query.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        # A worker keeps its one connection. A web request has a thread of its own, whose connection would be left
        # behind, so there they come from a pool; a pool must not be shared with forked children, so only there.
        "CONN_MAX_AGE": 0 if web else None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": pgbouncer,
        "OPTIONS": {
            "prepare_threshold": None if threshold is None else int(threshold),
            **({"pool": {"min_size": 1, "max_size": 16}} if web else {}),
            **limited(query, sessions=not pgbouncer),
        },
    }


def limited(options: Mapping[str, Any], *, sessions: bool = True) -> dict[str, Any]:
    """Return the options of PostgreSQL connections with a limit for all that they might wait for; those given hold.

    Args:
        sessions: whether a connection has a session of its own, which keeps limits; else they must be the role's.
    """
    found = {**POSTGRES_LINE, **options}
    if sessions:
        session = str(options.get("options", ""))
        own = (
            f"-c {name}={value}"
            for name, value in {**POSTGRES_LIMITS, **POSTGRES_UNCOMPILED}.items()
            if f"{name}=" not in session
        )
        found["options"] = " ".join([session, *own]).strip()
    return found
