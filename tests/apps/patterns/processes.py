"""What the engine finds when this app is installed, as real workers of the tests have it."""

from orchestrator import registry
from tests.apps.patterns.catalogue import WORKFLOWS

for workflow in WORKFLOWS:
    registry.register_definition(workflow)
