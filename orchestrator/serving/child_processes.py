"""All child processes of one `up`, from the first start to the last end."""

import time
from collections.abc import Callable, Sequence

from orchestrator.serving import CannotStart
from orchestrator.serving.child_process import ChildProcess
from orchestrator.serving.log import Log, last_lines

PATIENCE = 3.2  # seconds that children have to end by themselves
START_PATIENCE = 120.0  # seconds that a child may take to be ready, on a machine that has much else to do
SAY_EVERY = 5.0  # seconds between two lines about a child that is not ready
LAST_PATIENCE = 1.0  # seconds for those that the others rely on


class ChildProcesses:
    """Children in the order of their start. Those that others need come first and go last."""

    def __init__(
        self, say: Callable[[str], None], stopping: Callable[[], bool]
    ) -> None:
        self.children: list[ChildProcess] = []
        self.logs: list[Log] = []
        self.say = say
        self.stopping = stopping

    def start(
        self,
        child: ChildProcess,
        ready: Callable[[], bool] = lambda: True,
        patience: float = START_PATIENCE,
    ) -> None:
        """Start `child` and wait until it is ready, with a line now and then; do nothing while `up` is stopping.

        Raises:
            CannotStart: it ended, or was not ready after `patience` seconds.
        """
        if self.stopping():
            return
        self.logs.append(Log(child.log, child.name))
        self.children.append(child)
        child.start()
        self._await(child, ready, time.monotonic() + patience)

    def _await(
        self, child: ChildProcess, ready: Callable[[], bool], deadline: float
    ) -> None:
        say_at = time.monotonic() + SAY_EVERY
        while not ready() and not self.stopping():
            if not child.alive:
                raise _failed(child, f"ended with {child.ending}")
            if time.monotonic() > deadline:
                raise _failed(child, "does not answer")
            if time.monotonic() > say_at:
                say_at += SAY_EVERY
                last = last_lines(child.log, 1) or "it has said nothing yet"
                self.say(f"Waiting for {child.name}: {last}")
            time.sleep(0.05)

    def look_after(self) -> None:
        """Restart dead children, and show the errors in their logs."""
        for child in self.children:
            if line := child.look_after():
                self.say(line)
        for log in self.logs:
            log.relay(self.say)

    def end(self) -> None:
        """End every child, in less than five seconds: all but the first together, then the first."""
        first, others = self.children[:1], self.children[1:]
        end_together(others, PATIENCE)
        end_together(first, LAST_PATIENCE)
        self.children.clear()


def _failed(child: ChildProcess, how: str) -> CannotStart:
    said = f"{last_lines(child.log)} (all of it in {child.log})"
    return CannotStart(f"{child.name} {how}: {said}")


def end_together(children: Sequence[ChildProcess], patience: float) -> None:
    """Ask all `children` to end at once; kill those that have not after `patience` seconds."""
    for child in children:
        child.ask_to_end()
    moment = time.monotonic() + patience
    for child in children:
        child.wait_until(moment)
