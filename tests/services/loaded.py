"""Management commands as processes of their own, forked from one that has the project loaded.

Most of what a start costs is importing the project and setting Django up. A process that has done both in an
environment, and has begun nothing else (no thread, no connection), forks the commands that tests start in that same
environment. Each has its own process group, log, signals and exit code, and runs `manage.py` from its first line.

usage: python -m tests.services.loaded
"""

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from orchestrator import process_group
from orchestrator.serving.child_process import ChildProcess

KEPT = 3  # loaded processes that wait for the next command in their environment; each has some 70 MB
PAUSE_SECONDS = 0.01  # between two looks whether a command has ended
OF_ONE_TEST = "PYTEST_CURRENT_TEST"  # the variable that no program reads


class LoadedProcess:
    """A process that has the project loaded in one environment, seen from the tests.

    It answers one question at a time, and does nothing by itself: a command that has ended remains until its ending is
    asked for, as a child of the tests' own would.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self.commands: list[Forked] = []
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=environ,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=process_group.end_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509  as in ChildProcess
        )
        atexit.register(self.end)

    def start(self, words: Sequence[str], log: Path) -> int:
        """Fork a command whose output is added to the file `log`; return its process id."""
        log.touch()  # the command itself opens it only later
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as under nohup
        return int(self._ask("start", words, str(log), ignored))

    def ending(self, pid: int) -> int | None:
        """Return the exit code of a command, or minus the signal that ended it; None as long as it runs."""
        code: int | None = self._ask("ending", pid)
        return code

    def _ask(self, *question: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise ChildProcessError(f"{self._process.args!r} has ended")
        return json.loads(answer)

    def idle(self) -> bool:
        """Tell whether all of its commands have ended."""
        self.commands = [one for one in self.commands if one.poll() is None]
        return not self.commands

    def end(self) -> None:
        """End the process, and with it what is left of its commands."""
        with self._process:
            assert self._process.stdin
            self._process.stdin.close()


class Forked(subprocess.Popen[bytes]):
    """A command that was forked, used as one that was started."""

    def __init__(self, words: Sequence[str], parent: LoadedProcess, log: Path) -> None:
        self.args = words
        self.pid = parent.start(words, log)
        self.returncode: int | None = None
        self._parent = parent
        parent.commands.append(self)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.ending(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        begun = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() > begun + timeout:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(PAUSE_SECONDS)
        return code


class ForkedProcess(ChildProcess):
    """A management command that is forked where the project is loaded already.

    Its command is that of any other; what comes after the interpreter's name is run.
    """

    def start(self) -> None:
        environ = {k: v for k, v in self.environ.items() if k != OF_ONE_TEST}
        parent = loaded_process(environ, self.folder)
        self.process = Forked(self.command[1:], parent, self.log)
        self.started_at = time.monotonic()
        self.start_at = None


Environment = tuple[tuple[str, str], ...]
loaded: dict[Environment, LoadedProcess] = {}
"""By environment, the one that was used last at the end. Settings are read from it, so no two can share a process."""


def loaded_process(environ: Mapping[str, str], folder: Path) -> LoadedProcess:
    """Return the process that has the project loaded in an environment, a new one if need be."""
    key = tuple(sorted(environ.items()))
    found = loaded.pop(key, None) or LoadedProcess(environ, folder)
    idle = [environment for environment, one in loaded.items() if one.idle()]
    for environment in idle[: max(0, len(loaded) + 1 - KEPT)]:
        loaded.pop(environment).end()
    loaded[key] = found
    return found


def serve(questions: IO[str], answers: IO[str]) -> list[str]:
    """Answer the questions of the tests until there are no more; in a forked command, return its words."""
    for question in questions:
        match json.loads(question):
            case "start", words, log, ignored:
                parent = os.getpid()
                pid = os.fork()
                if pid == 0:
                    become_child(parent, log)
                    handler = signal.SIG_IGN if ignored else signal.SIG_DFL
                    signal.signal(signal.SIGHUP, handler)
                    return list(words)
                process_group.lead_group(pid)
                answer: int | None = pid
            case "ending", pid:
                found, status = os.waitpid(pid, os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if found else None
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()
    sys.exit()


def become_child(parent: int, log: str) -> None:
    """Give this process what ChildProcess gives those it starts."""
    process_group.lead_group()
    if ask := process_group.end_with_parent(parent, signal.SIGTERM):
        ask()
    to_log = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for path, flags, targets in ((os.devnull, os.O_RDONLY, [0]), (log, to_log, [1, 2])):
        opened = os.open(path, flags, 0o666)
        for target in targets:
            os.dup2(opened, target)
        os.close(opened)


def load() -> None:
    """Import what a management command needs, and set Django up."""
    import django
    from django.core.checks import run_checks

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    django.setup()
    from orchestrator.management.commands.work import worker_check_tags

    run_checks(tags=worker_check_tags())
    gc.freeze()  # what is loaded stays, and is shared by all


if __name__ == "__main__":
    load()
    sys.argv = serve(sys.stdin, sys.stdout)
    runpy.run_path(sys.argv[0], run_name="__main__")
