"""What the environment may say about a set-up, read once by `orchestrator.settings`.

Everything has a default that suits one laptop; a value that cannot be used is refused with the variable's name.
"""

import base64
import fcntl
import hashlib
import math
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from orchestrator.exceptions import ProcessionError

# A unix socket's path has room for 104 bytes on macOS and 108 on Linux, its end included.
LONGEST_SOCKET_PATH = 100

SQLITE_OPTIONS = {
    # A transaction that reads first and writes later would fail at once when another one wrote in between.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: what was acknowledged survives a power failure.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}

Network = IPv4Network | IPv6Network

# A worker that stands still inside a transaction must not hold its rows, or wait for another's, for ever.
POSTGRES_LIMITS = "-c idle_in_transaction_session_timeout=5000 -c lock_timeout=5000"


class SettingRefused(ProcessionError, ImproperlyConfigured):
    """A value from the environment cannot be used."""


def words(value: str) -> list[str]:
    """Return the comma separated parts of `value`, without the empty ones."""
    return [word for part in value.split(",") if (word := part.strip())]


def flag(environ: Mapping[str, str], name: str) -> bool:
    """Tell whether the variable `name` is switched on; absent is off.

    Raises:
        SettingRefused: the value is neither yes nor no.
    """
    value = environ.get(name, "").lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"", "0", "false", "no", "off"}:
        return False
    raise SettingRefused(f"{name}={value!r} is neither 1 nor 0.")


def prefixed(environ: Mapping[str, str], prefix: str) -> dict[str, list[str]]:
    """Return the words of all variables that start with `prefix`, by the rest of their names in lower case."""
    return {
        name.removeprefix(prefix).lower(): words(value)
        for name, value in environ.items()
        if name.startswith(prefix) and words(value)
    }


def networks(value: str, name: str) -> list[Network]:
    """Return the networks and single addresses that the variable `name` lists as `value`.

    Raises:
        SettingRefused: one of them is neither.
    """
    try:
        return [ip_network(word) for word in words(value)]
    except ValueError as error:
        raise SettingRefused(f"{name}: {error}.") from None


def networks_by_name(
    environ: Mapping[str, str], prefix: str
) -> dict[str, list[Network]]:
    """Return the networks that all variables under `prefix` list, by the rest of their names in lower case.

    Raises:
        SettingRefused: one of them is no network.
    """
    return {
        name.removeprefix(prefix).lower(): listed
        for name, value in environ.items()
        if name.startswith(prefix) and (listed := networks(value, name))
    }


def trusted_proxies(environ: Mapping[str, str]) -> list[str]:
    """Return the networks of the proxies that are believed when they say where a request comes from.

    Raises:
        SettingRefused: one of them is no network.
    """
    name = "PROCESSION_TRUSTED_PROXIES"
    return [str(network) for network in networks(environ.get(name, ""), name)]


def rates(environ: Mapping[str, str], prefix: str) -> dict[str, tuple[float, int]]:
    """Return the rates that all variables under `prefix` give, by the rest of their names in lower case.

    "5,20" is 5 a second in the long run, and 20 at once; "5" alone is 5 at once too.

    Raises:
        SettingRefused: one of them has another form.
    """
    found = {}
    for name, (rate, *burst) in prefixed(environ, prefix).items():
        try:
            found[name] = (
                float(rate),
                int(*burst) if burst else math.ceil(float(rate)),
            )
            in_order = 0 < found[name][0] < math.inf and found[name][1] > 0
        except (ValueError, TypeError, OverflowError):
            in_order = False
        if not in_order:
            raise SettingRefused(f"{prefix}{name.upper()} is not like 5 or 5,20.")
    return found


def numbers(
    environ: Mapping[str, str], prefix: str, names: Iterable[str]
) -> dict[str, float]:
    """Return those of the settings `names` that the environment gives a number, under `prefix` and their name.

    Raises:
        SettingRefused: the value is no number.
    """
    found: dict[str, float] = {}
    for name in names:
        if text := environ.get(prefix + name):
            try:
                found[name] = int(text) if text.isdecimal() else float(text)
            except ValueError:
                raise SettingRefused(
                    f"{prefix}{name}={text!r} is not a number."
                ) from None
    return found


def data_folder(path: Path) -> Path:
    """Return `path` as a folder that exists and can be written to; a new one belongs to its owner alone.

    Raises:
        SettingRefused: it cannot be made, or is read-only.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingRefused(
            f"Cannot make the data folder {path}: {error.strerror}."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise SettingRefused(
            f"Cannot write to the data folder {path}: it is read-only."
        )
    return path


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


def database(url: str, data_dir: Path, *, web: bool) -> dict[str, Any]:
    """Return Django's settings of the database at `url`; empty means SQLite in the data folder.

    Args:
        web: the connections serve requests, each in a thread of its own, and are pooled where that is possible.

    Raises:
        SettingRefused: the address is not one of a SQLite or PostgreSQL database.
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "":
            return sqlite(data_dir / "db.sqlite3")
        case "sqlite":
            # sqlite:///folder/file is relative, sqlite:////folder/file absolute, as in other libraries.
            return sqlite(Path(unquote(parts.path).removeprefix("/")).absolute())
        case "postgres" | "postgresql":
            return postgres(parts, web=web)
    raise SettingRefused(
        "DATABASE_URL must look like postgresql://user:password@host:5432/name or sqlite:///folder/file."
    )


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
    """Return Django's settings of the PostgreSQL database at the split address `parts`."""
    query = dict(parse_qsl(parts.query))
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
        "OPTIONS": {
            "options": POSTGRES_LIMITS,
            "connect_timeout": 10,  # seconds
            # What the engine sends for every step is planned once a connection.
            "prepare_threshold": 2,
            **({"pool": {"min_size": 1, "max_size": 16}} if web else {}),
            **query,
        },
    }
