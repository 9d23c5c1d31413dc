"""A PgBouncer in front of the run's database, with fewer sessions than there are connections to it."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from orchestrator.serving import port
from tests.services.database import address_of_server, led_over
from tests.services.postgres import UNPRIVILEGED
from tests.services.program import Program

SESSIONS = 3
USUAL = "/usr/sbin/pgbouncer"
PREPARES = (1, 21)
"""From this version on it knows on which sessions a statement is prepared."""
REMEDY = "there is no PgBouncer: install it (apt-get install pgbouncer)"


def installed() -> str | None:
    """Return the path of PgBouncer, which is installed as a system package where that is allowed; None without any."""
    lock = Path(tempfile.gettempdir()) / f"procession-pgbouncer-{os.geteuid()}.lock"
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not _found() and os.geteuid() == 0 and shutil.which("apt-get"):
            command = ["apt-get", "install", "-y", "--no-install-recommends"]
            quiet = {**os.environ, "RUNLEVEL": "1"}  # nothing is started
            subprocess.run([*command, "pgbouncer"], check=False, env=quiet)
        return _found()


def _found() -> str | None:
    return USUAL if Path(USUAL).exists() else shutil.which("pgbouncer")


def version(program: str) -> tuple[int, ...]:
    """Return its first two numbers."""
    told = subprocess.run([program, "--version"], capture_output=True, check=True)
    numbers = re.findall(rb"\d+", told.stdout)
    return tuple(map(int, numbers[:2]))


class PgBouncer:
    """The program in transaction mode.

    Args:
        program: its path.
        folder: where it may write, which must belong to whom it runs as.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self.port = port.free_port()
        own, knows = connection.get_connection_params(), version(program) >= PREPARES
        host, of_server = address_of_server()
        server = make_conninfo(host=host, port=of_server)
        file = folder / "pgbouncer.ini"
        file.write_text(f"""
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {folder / "users.txt"}
pool_mode = transaction
default_pool_size = {SESSIONS}
{"max_prepared_statements = 200" if knows else ""}
{f"user = {UNPRIVILEGED}" if os.geteuid() == 0 else ""}
""")
        user, password = own.get("user", ""), own.get("password", "")
        (folder / "users.txt").write_text(f'"{user}" "{password}"\n')
        self.program = Program("pgbouncer", [program, str(file)])
        name = str(connection.settings_dict["NAME"])
        line = urlsplit(led_over(self.port))._replace(path=f"/{name}")
        self.address = line.geturl()
        prepared = "&prepare_threshold=2" if knows else ""
        self.settings = f"{self.address}&pgbouncer=true{prepared}"

    def start(self) -> None:
        self.program.start()
        self.program.wait_until(self._answers)

    def stop(self) -> None:
        self.program.stop()

    def sessions(self) -> int:
        """Return how many sessions it has on the server; others of the database may be left from other tests."""
        ports = {
            line.laddr.port
            for line in psutil.Process(self.program.pid).net_connections("tcp")
            if line.status == psutil.CONN_ESTABLISHED and line.laddr.port != self.port
        }
        count = "SELECT COUNT(*) FROM pg_stat_activity WHERE client_port = ANY(%s)"
        with connection.cursor() as cursor:
            cursor.execute(count, [[*ports]])
            return int(cursor.fetchone()[0])

    def connected(self) -> psycopg.Connection:
        """Return a connection of somebody else's through it, on which each statement is a transaction."""
        return psycopg.connect(self.address, autocommit=True, prepare_threshold=None)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True


@contextmanager
def running(program: str) -> Iterator[PgBouncer]:
    """Run it as somebody without rights: as root it refuses to."""
    with tempfile.TemporaryDirectory(prefix="procession-pgbouncer-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        found = PgBouncer(program, folder)
        try:
            found.start()
            yield found
        finally:
            found.stop()
