"""Removing processes that ended long ago, in a process beside a supervisor's workers.

It is there only where the settings or a definition say how long processes are kept. Those of several hosts may run at
once: what one has locked, the others pass over.
"""

from __future__ import annotations

import logging
import random
import time

from django.db import Error as DatabaseError
from django.db import connections

from orchestrator.conf import conf
from orchestrator.engine.pruning import Pruning
from orchestrator.retention import retention

log = logging.getLogger(__name__)

NAME = "procession-old"
FIRST_SWEEPS = 30
"""After how many sweeps it begins: what is just starting has other things to do."""
EVERY_SECONDS = 3600
ACTOR = "workers"
"""Who it was, in the audit."""


def run() -> None:
    """Removes what may go, again and again, until it is killed."""
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
