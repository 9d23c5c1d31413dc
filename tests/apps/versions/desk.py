"""Starts claims and letters on a version, and tells them what happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

from orchestrator import registry, send_event, start_process
from orchestrator.definition import Event, Workflow
from orchestrator.engine.loops.drain import drain
from orchestrator.models import ProcessInstance
from tests.apps.versions.claims import Claim, ClaimFiled
from tests.apps.versions.letters import NAME


@contextmanager
def only(name: str, version: int) -> Iterator[None]:
    """As it was when the code had this version alone."""
    before = dict(registry.definitions)
    for other in [key for key in before if key[0] == name and key[1] != version]:
        del registry.definitions[other]
    try:
        yield
    finally:
        registry.definitions.clear()
        registry.definitions.update(before)


def tell(event: Event, process: UUID | None = None) -> None:
    send_event(event, id=str(uuid4()), source="test", process_id=process)
    drain()


def filed(claim: str = "C-1", version: int = 1, amount: int = 7) -> ProcessInstance:
    """A claim that waits for its assessor, on that version."""
    with only(Claim.name, version):
        tell(ClaimFiled(claim, amount))
    found = ProcessInstance.objects.get(
        name=Claim.name, correlation_key=claim, finished_at=None
    )
    return now_of(found.pk)


def written(letter: str = "L-1", version: int = 1) -> ProcessInstance:
    """A letter that waits for its approval, on that version."""
    found = registry.find_definition(NAME, version)
    assert issubclass(found, Workflow)
    with only(NAME, version):
        receipt = start_process(found, found.Input(letter))
        drain()
    return now_of(receipt.process_id)


def now(process: ProcessInstance) -> ProcessInstance:
    return now_of(process.pk)


def now_of(pk: UUID) -> ProcessInstance:
    rows = ProcessInstance.objects.select_related("definition")
    found: ProcessInstance = rows.get(pk=pk)
    return found
