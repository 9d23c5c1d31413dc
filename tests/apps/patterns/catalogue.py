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
    starving,
    unstorable,
)

MODULES = (
    patterns,
    failing,
    limits,
    lost,
    misbehaving,
    reporting,
    rounds,
    starving,
    unstorable,
)

WORKFLOWS: tuple[type[Workflow], ...] = tuple(
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type)
    and issubclass(value, Workflow)
    and value.__module__ == module.__name__
)
