"""Commands that are forked where the project is loaded are processes like any other."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from tests.services import loaded
from tests.services.loaded import ForkedProcess
from tests.services.patience import A_MINUTE, wait_for

Run = Callable[..., ForkedProcess]
TOKYO = {"PROCESSION_TIME_ZONE": "Asia/Tokyo"}
ASLEEP = "import time; print('asleep', flush=True); time.sleep(600)"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Return a function that runs Python in a process of the project; all end with the test."""
    started: list[ForkedProcess] = []

    def begin(program: str, **environ: str) -> ForkedProcess:
        manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        command = [*manage, "shell", "-v", "0", "--no-startup", "-c", program]
        log = tmp_path / f"{len(started)}.log"
        child = ForkedProcess(
            "shell", command, {**os.environ, **environ}, settings.BASE_DIR, log
        )
        started.append(child)
        child.start()
        return child

    yield begin
    for child in started:
        child.wait_until(0)


def said(child: ForkedProcess) -> str:
    assert child.process
    child.process.wait(A_MINUTE)
    return child.log.read_text()


def test_it_runs_manage_py_in_its_own_environment_group_and_log(run: Run) -> None:
    child = run(
        "import os, sys; from django.conf import settings;"
        "print(sys.argv[1], os.getpgid(0) == os.getpid(), settings.TIME_ZONE, sys.stdin.read());"
        "print('wrong', file=sys.stderr); sys.exit(7)",
        **TOKYO,
    )

    assert said(child).split() == ["shell", "True", "Asia/Tokyo", "wrong"]
    assert child.ending == "exit code 7"


def test_an_uncaught_error_is_told_and_is_an_exit_code(run: Run) -> None:
    child = run("1 / 0")

    assert "ZeroDivisionError" in said(child)
    assert child.ending == "exit code 1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(run: Run, number: signal.Signals) -> None:
    child = run(ASLEEP)
    wait_for(lambda: "asleep" in child.log.read_text(), 5)
    assert child.process
    assert child.alive

    child.process.send_signal(number)

    child.process.wait(A_MINUTE)
    assert child.ending == f"signal {number.name}"
    assert not psutil.pid_exists(child.process.pid)


def test_each_environment_has_a_process_with_settings_of_its_own(run: Run) -> None:
    program = "import os; from django.conf import settings; print(os.getpid(), os.getppid(), settings.TIME_ZONE)"
    told = [said(run(program, **environ)).split() for environ in (TOKYO, {}, TOKYO)]

    pids, parents, zones = zip(*told, strict=True)
    assert len(set(pids)) == 3
    assert parents[0] == parents[2] != parents[1]
    assert zones == ("Asia/Tokyo", settings.TIME_ZONE, "Asia/Tokyo")


def test_few_loaded_processes_are_kept_and_none_ends_under_its_commands(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded, "KEPT", 1)
    child = run(ASLEEP, **TOKYO)

    said(run("pass"))
    assert child.alive
    assert len(loaded.loaded) == 2

    child.wait_until(0)
    said(run("pass"))
    assert len(loaded.loaded) == 1


def test_it_ends_with_the_process_that_forked_it(run: Run) -> None:
    child = run(ASLEEP)
    wait_for(lambda: "asleep" in child.log.read_text(), 5)
    assert child.process
    process = psutil.Process(child.process.pid)
    _, parent = loaded.loaded.popitem()

    parent.end()

    assert psutil.wait_procs([process], A_MINUTE)[1] == []
    child.process.returncode = 0  # nobody is left who could tell
