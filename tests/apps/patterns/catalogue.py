"""All workflows of this app."""

from orchestrator.definition import Workflow
from tests.apps.patterns import (
    failing,
    limits,
    lost,
    misbehaving,
    patterns,
    reporting,
    rounds,
    spoils,
    starving,
    unstorable,
)
from tests.services.declared import declared

MODULES = (
    *(patterns, failing, limits, lost, misbehaving),
    *(reporting, rounds, spoils, starving, unstorable),
)

WORKFLOWS: tuple[type[Workflow], ...] = tuple(
    kind for module in MODULES for kind in declared(vars(module))
)
