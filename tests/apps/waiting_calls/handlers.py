"""Who makes the calls that commands ask for."""

from orchestrator import CommandContext, handles
from tests.apps.waiting_calls.processes import Called, CallInThread, CallOutside
from tests.apps.waiting_calls.ways import spend, spend_thread


@handles(CallOutside, after_commit=True, attempts=2)
async def call_outside(command: CallOutside, context: CommandContext) -> Called:
    """Tells when it has come back."""
    await spend(command.name, command.how)
    return Called(command.name)


@handles(CallInThread, after_commit=True, threads=2, attempts=2)
def call_in_thread(command: CallInThread) -> None:
    """Blocks a thread of its own."""
    spend_thread(f"{command.name} in a thread", "")
