"""The pruner: a process beside a supervisor's workers that removes processes which ended long ago.

It runs only if the settings or a definition have a retention. Those of several hosts may run at once: each skips the
rows that another one has locked.
"""

from __future__ import annotations

import logging
import random
import time

from django.db import Error as DatabaseError
from django.db import connections

from orchestrator.configuration.conf import conf
from orchestrator.engine.storage.pruning import Pruning
from orchestrator.retention import retention

log = logging.getLogger(__name__)

NAME = "procession-old"
FIRST_SWEEPS = 30
"""The pause before it begins, in sweeps: a set-up that just starts has other work."""
EVERY_SECONDS = 3600
ACTOR = "workers"
"""The actor of its audit rows."""


def run_pruner() -> None:
    """Remove old processes, again and again, until this process is killed."""
    pause = conf().SWEEP_SECONDS * FIRST_SWEEPS
    while True:
        time.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311  # jitter
        pause = EVERY_SECONDS
        try:
            removed = Pruning(retention(), ACTOR).run()
            log.info("%s processes that ended long ago were removed", removed.total())
        except DatabaseError as error:
            log.warning("old processes stay for now: %s", error)
        connections.close_all()
