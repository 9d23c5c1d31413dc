"""A worker is killed while events are decided and not written: nothing has happened outside, and nothing is lost."""

import os
import signal
from collections.abc import Iterator
from uuid import uuid4

import pytest

from orchestrator import send_event, start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.models import InboxEvent, ProcessInstance
from tests.apps.many_together.processes import HELD, Cards, CardTurned, TableLaid, gate
from tests.services.crews import knowing, set_out
from tests.services.patience import wait_for
from tests.services.workers import Workers, hired, said

cards = knowing(Cards)


@pytest.fixture
def worker(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """Run one worker."""
    set_out(monkeypatch)
    with hired() as hire:
        yield hire(1)
    for name in ("begun", "over"):
        gate(name).unlink(missing_ok=True)


def test_only_what_was_just_being_decided_is_charged(worker: Workers) -> None:
    names = [*(f"table {number}" for number in range(8)), HELD]
    pks = [start_process(Cards, TableLaid(name)).process_id for name in names]
    drain()
    ids = {pk: uuid4().hex for pk in pks}
    for pk in pks:
        send_event(CardTurned(), id=ids[pk], source="players", process_id=pk)
    wait_for(gate("begun").exists, 20, lambda: said(worker))
    os.kill(worker.pids[0], signal.SIGKILL)
    wait_for(lambda: len(gate("begun").read_text()) > 1, 20, lambda: said(worker))
    gate("over").touch()
    moved = ProcessInstance.objects.filter(step="Down")
    wait_for(lambda: moved.count() == len(pks), 20, lambda: said(worker))

    events = InboxEvent.objects.filter(source="players")
    attempts = dict(events.values_list("process", "attempt"))
    assert [attempts[pk] for pk in pks] == [*[1] * 8, 2]
    assert {process.data["turns"] for process in moved} == {1}
    assert set(events.values_list("verdict", flat=True)) == {"moved"}
