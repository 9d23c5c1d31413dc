"""Makes the workflows known to the engine for a module of tests, and starts workers who know them too."""

from tests.apps.interrupted_undo import processes
from tests.services.crews import knowing

__all__ = ["harbour"]

WORKFLOWS = (processes.Overrun, processes.Endless, processes.Voyage)


harbour = knowing(*WORKFLOWS)
