"""A worker of this process with a supervisor that looks when it is told to."""

import time

from orchestrator.engine.claims.held import BEGIN_SECONDS
from orchestrator.workers.current import Current
from orchestrator.workers.held import SharedHeld
from orchestrator.workers.taking_over import TakingOver


class Supervised(Current):
    """A worker of this process, and who looks after what it holds; the work itself lets it look."""

    def __init__(self) -> None:
        self.shown = SharedHeld()
        super().__init__(held=self.shown)
        self.others = TakingOver("default", {self.owner: self.shown})

    def look(self) -> None:
        """Let what is held be looked at when it is time."""
        time.sleep(BEGIN_SECONDS + 0.05)
        self.others.look()
