"""Who runs the errands."""

from orchestrator import handles
from tests.apps.long_work.processes import RunErrand
from tests.apps.long_work.ways import spend


@handles(RunErrand, after_commit=True)
def run_errand(command: RunErrand) -> None:
    """Takes its time."""
    spend(command.name, command.how)
