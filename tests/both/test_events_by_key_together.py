"""Events that name their processes by their keys share a commit; the key names the process that has it in the end."""

from collections.abc import Iterator
from itertools import count

import pytest

from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel
from orchestrator.engine.sql.tables import events
from orchestrator.models import InboxEvent, ProcessInstance
from tests.apps.many_together.processes import (
    MEANWHILE,
    Cards,
    CardTurned,
    TableCleared,
    TableLaid,
)
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db(transaction=True)

cards = knowing(Cards)
numbers = count(1)
NAMES = ("first", "second", "third")


@pytest.fixture(autouse=True)
def tables(cards: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lay three tables; have what is claimed together written together, also on a busy machine."""
    monkeypatch.setattr("orchestrator.engine.work.worker_slice.HOLD_SECONDS", 30.0)
    monkeypatch.setattr("orchestrator.engine.loops.drain.FEW", 64)
    for name in NAMES:
        start_process(Cards, TableLaid(name))
    drain()
    yield
    MEANWHILE.clear()


def send(event: Event, key: str) -> None:
    send_event(event, id=f"event {next(numbers)}", correlation_key=key)


def stand(name: str) -> list[tuple[str, int]]:
    """Return the step and the number of turns of each process of a table, the oldest first."""
    rows = ProcessInstance.objects.filter(correlation_key=name).order_by("started_at")
    return [(row.step, row.data["turns"]) for row in rows]


def test_a_process_that_ends_gives_its_key_to_the_next_one_of_the_same_claim() -> None:
    for event in (CardTurned(), TableCleared(), None, CardTurned()):
        for name in NAMES:
            send(event or TableLaid(name), name)
    drain()

    for name in NAMES:
        assert stand(name) == [("Cleared", 1), ("Down", 1)]


def test_an_event_is_for_the_process_that_has_the_key_when_it_is_written() -> None:
    """Another worker ends the process that had it, and starts the next one, after the event was decided."""

    def follow() -> None:
        cancel(ProcessInstance.objects.get(correlation_key="first").pk, request=asked())
        start_process(Cards, TableLaid("first"))
        for claimed in events.claim("default", "another", 9, 60):
            deliver_claimed(claimed.work)

    for name in NAMES:
        send(CardTurned(), name)
    failed = list[Exception]()
    MEANWHILE["second"] = lambda: failed.extend(raised(together(follow)))
    drain()

    assert failed == []
    assert stand("first") == [("Up", 0), ("Down", 1)]
    assert [stand(name) for name in NAMES[1:]] == [[("Down", 1)]] * 2


def test_events_by_id_and_by_key_of_one_process_move_it_in_their_order() -> None:
    ids = dict(ProcessInstance.objects.values_list("correlation_key", "pk"))
    for turn in range(6):
        for name in NAMES:
            if turn % 2:
                send(CardTurned(), name)
            else:
                id = f"event {next(numbers)}"
                send_event(CardTurned(), id=id, process_id=ids[name])
    drain()

    for name in NAMES:
        assert stand(name) == [("Up", 6)]
        taken = InboxEvent.objects.filter(process=ids[name], revision__gt=1)
        revisions = taken.order_by("pk").values_list("revision", flat=True)
        assert list(revisions) == [2, 3, 4, 5, 6, 7]


def test_an_event_whose_key_nobody_has_waits_beside_those_that_move() -> None:
    for name in ("nobody", *NAMES):
        send(CardTurned(), name)
    drain()

    assert InboxEvent.objects.get(correlation_key="nobody").verdict == "unrouted"
    assert [stand(name) for name in NAMES] == [[("Down", 1)]] * 3
