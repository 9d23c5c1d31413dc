"""What compose.yaml and the units of systemd start, started as it is written there, from what the image holds."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.conf import settings

from orchestrator.serving import CannotStart, port
from orchestrator.serving.web import open_listener
from tests.services import deployment
from tests.services.database import another_database
from tests.services.patience import SHARED, bar, wait_for
from tests.services.valkey import ValkeyServer

GIVEN = {
    "POSTGRES_PASSWORD": "not asked for here",
    "PROCESSION_SECRET_KEY": "a key of the test's own, and long enough",
    "PROCESSION_ALLOWED_HOSTS": "procession.example.org",
}
HAND_OVER = (
    "import os, sys; _, to, *do = sys.argv; os.dup2(int(to), 3); os.execv(do[0], do)"
)
PLACED = '{"order_id": "A-1", "destination": "internal"}'


@dataclass
class Started:
    """What is to be started: each with its words and the variables that it gets besides those of all."""

    migrate: Sequence[str]
    web: Sequence[str]
    work: Sequence[str]
    environ: Mapping[str, str]
    healthy: Sequence[str] = ()
    """What asks whether the web server is."""


def by_compose(web: int) -> Started:
    """Return what containers run, on another port."""
    services = deployment.compose(GIVEN)["services"]

    def words(command: Sequence[str]) -> list[str]:
        python, *more = command
        assert python == "python3"
        return [sys.executable, *(word.replace("8000", str(web)) for word in more)]

    environ = services["web"]["environment"]
    assert environ == services["work"]["environment"]
    [asks, *test] = services["web"]["healthcheck"]["test"]
    assert asks == "CMD"
    names = ("migrate", "web", "work")
    migrate, serves, work = (words(services[name]["command"]) for name in names)
    return Started(migrate, serves, work, environ, healthy=words(test))


def by_systemd(web: int) -> Started:
    """Return what the units start; systemd listens for the web server and hands it the socket as descriptor 3."""
    [socket] = [path for path in deployment.UNITS if path.suffix == ".socket"]
    assert deployment.unit(socket)["ListenStream"] == "127.0.0.1:8000"
    migrate, variables = deployment.started("migrate")
    serves, _ = deployment.started("web")
    work, _ = deployment.started("work@", "default")
    hands_over = [sys.executable, "-c", HAND_OVER, str(listening(web))]
    key = {"PROCESSION_SECRET_KEY": GIVEN["PROCESSION_SECRET_KEY"]}
    return Started(migrate, [*hands_over, *serves], work, {**variables, **key})


def listening(web: int) -> int:
    """Return the descriptor of a socket that listens at a port, which other programs inherit."""
    taken = port.bind(web)
    taken.set_inheritable(True)
    return taken.detach()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Lay out what the image holds."""
    folder = tmp_path / "image"
    names = deployment.of_the_image() or pytest.skip("needs a clone")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(deployment.ROOT / name, folder / name)
    return folder


@pytest.fixture
def environ(tmp_path: Path, valkey: ValkeyServer) -> Iterator[dict[str, str]]:
    """Give an empty environment with a database and a Redis of the test's own."""
    with another_database(f"deployed_{time.monotonic_ns()}") as database:
        yield {
            "PATH": os.environ["PATH"],
            "DATABASE_URL": database,
            "REDIS_URL": valkey.url,
            "PROCESSION_DATA_DIR": str(tmp_path / "data"),
            "PROCESSION_DEMO": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


@contextmanager
def running(
    words: Sequence[str], image: Path, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program for the block; it must end when it is asked to, as quickly as it is given time there."""
    process = subprocess.Popen(words, cwd=image, env=environ, close_fds=False)
    try:
        yield process
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert time.monotonic() - begun < bar(5)
        assert process.returncode in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()


def answer(web: int, path: str) -> int:
    """Ask the web server as a proxy in front of it would; return the status, 0 while there is none."""
    connection = HTTPConnection(port.LOOPBACK, web, timeout=10 * SHARED)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


ENGINE = settings.DATABASES["default"]["ENGINE"]
BROUGHT = pytest.mark.skipif(
    "postgresql" not in ENGINE, reason="compose.yaml brings it"
)
COMPOSE = pytest.param(by_compose, marks=BROUGHT)
SYSTEMD = pytest.param(by_systemd, marks=pytest.mark.once)


@pytest.mark.parametrize("how", [COMPOSE, SYSTEMD])
def test_all_of_it_runs_as_it_is_written(
    how: Callable[[int], Started], image: Path, environ: dict[str, str]
) -> None:
    web = port.free_port()
    started, before = how(web), files(image)
    environ = {**started.environ, **environ}
    environ.pop("PGPASSWORD", None)  # the test's server asks for its own, or for none

    def manage(*words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command, cwd=image, env=environ, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    subprocess.run(started.migrate, cwd=image, env=environ, check=True)
    with running(started.web, image, environ) as server:
        wait_for(lambda: server.poll() is not None or answer(web, "/livez") == 200, 20)
        assert server.poll() is None
        if started.healthy:
            subprocess.run(started.healthy, cwd=image, env=environ, check=True)
        manage("send_event", "OrderCreated", PLACED, "--id", "web-1")
        wait_for(lambda: answer(web, "/readyz") == 503, 20)  # work, and no workers
        assert answer(web, "/readyz?exclude=workers") == 200
        with running(started.work, image, environ):
            wait_for(lambda: answer(web, "/readyz") == 200, 20)
            wait_for(lambda: ended(manage("status", "--json")), 20)
        assert json.loads(manage("status", "--json"))["workers"] == 0

    assert "0 violations" in manage("check_invariants")
    assert files(image) == before  # it could be read-only


def ended(status: str) -> bool:
    """Tell whether the order has been listed."""
    found = json.loads(status)["definitions"]
    return any(row["statuses"] == {"completed": 1} for row in found)


@pytest.mark.once
def test_what_is_no_address_or_that_of_somebody_is_told_in_a_line() -> None:
    for where in ("nowhere", "127.0.0.1:web", ":8000"):
        with pytest.raises(CannotStart, match=r"is no address: write HOST:PORT\.$"):
            open_listener(where)
    with port.bind(0) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(CannotStart, match=r"^Port \d+ is in use: "):
            open_listener(where)


@pytest.mark.once
def test_the_end_of_an_answer_does_not_wait_for_word_of_its_beginning() -> None:
    """Whichever way the server came by its socket: it would be 40 ms for every page."""
    with (
        port.bind(0) as bound,
        open_listener(str(os.dup(bound.fileno()))) as handed_over,
    ):
        assert asyncio.run(_sends_at_once(bound))
        assert asyncio.run(_sends_at_once(handed_over))


async def _sends_at_once(listening: socket.socket) -> bool:
    """Whether asyncio's connections on it send small packets at once (TCP_NODELAY)."""
    told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        at_once = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        told.set_result(bool(at_once))
        writer.close()

    server = await asyncio.start_server(met, sock=listening.dup())
    async with server:
        _, writer = await asyncio.open_connection(*listening.getsockname())
        at_once = await told
        writer.close()
    return at_once
