"""What tests of steps that read media need: a context, and the readers that are installed or are not."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from examples import readers
from examples.readers import light
from orchestrator.definition import StepContext


class Bystander(StepContext):
    """A context that remembers what a step tells it."""

    def __init__(self, saved: Any = None) -> None:
        self.process_id = uuid4()
        self.idempotency_key = str(uuid4())
        self.step, self.attempt, self.visit = "a step", 1, 1
        self.deadline = datetime.now(UTC)
        self.saved = saved
        self.told: list[tuple[float, float | None]] = []

    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        self.told.append((done, total))

    def save(self, data: Any) -> None:
        self.saved = data

    def still_mine(self) -> bool:
        return True


def with_extra(*needed: str) -> pytest.MarkDecorator:
    """Leave a test out where these readers are light ones."""
    return pytest.mark.skipif(
        not all(map(readers.real, needed)), reason="the extra `media` is not installed"
    )


@pytest.fixture
def light_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all readers be light ones, as without the extra."""
    for name in readers.READERS:
        monkeypatch.setattr(readers, name, getattr(light, name))
