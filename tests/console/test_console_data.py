"""The data of a process on its page."""

from dataclasses import dataclass

from orchestrator.definition import Workflow, step
from orchestrator.testing import registered, started
from tests.services.client import Read


@dataclass(frozen=True)
class Counted:
    items: int
    keys: str


def count(items: int) -> int:
    return items


class Counting(Workflow):
    """Has fields that are named as methods of a dictionary."""

    Input = Counted
    flow = (step(count),)


def test_a_field_may_have_the_name_of_a_method(read: Read, db: None) -> None:
    with registered(Counting):
        process = started(Counting, Counted(7, "brass"))

        page = read(f"/processes/{process.id}/")

    assert "<dt>items</dt>" in page
    assert "brass" in page
