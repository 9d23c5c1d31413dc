"""Many at once on one process: one after the other, none lost, none twice."""

from functools import partial

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from orchestrator import send_event
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import escalate
from orchestrator.engine.sql.tables import events, instances
from orchestrator.exceptions import LeaseLost
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Status,
    Verdict,
)
from tests.apps.process_managers.desk import accept, finish, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.together import raised, together
from tests.services.doing import fresh, taking
from tests.services.operated import at_once, press

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("parcels"),
]

SENDERS = 32
WORKERS = 4


def test_events_sent_at_once_into_one_process_make_a_dense_history() -> None:
    parcel = underway()

    def send(number: int) -> None:
        event = ParcelScanned("P-1", f"place {number}")
        send_event(event, id=f"scan {number}", source="depot", process_id=parcel.pk)

    sent = together(*[partial(send, number) for number in range(SENDERS)])
    results = together(*[drain] * WORKERS)
    finish()

    assert raised(sent) + raised(results) == []
    assert fresh(parcel).revision == 2 + SENDERS
    points = parcel.checkpoints.order_by("revision")
    revisions = points.values_list("revision", flat=True)
    assert list(revisions) == list(range(1, 3 + SENDERS))
    assert Group.objects.filter(name__startswith="scan P-1").count() == SENDERS


def test_of_two_transitions_from_one_revision_one_wins() -> None:
    """The row lock is the first net; here it is cut, and the revision holds."""
    parcel = place()
    first, now = instances.lock(parcel.pk)
    second, _ = instances.lock(parcel.pk)
    assert first is not None
    assert second is not None
    winner = ProcessChange(first, Cause.of(CauseKind.SETTLED, 1), now)
    loser = ProcessChange(second, Cause.of(CauseKind.SETTLED, 2), now)
    winner.write()

    with pytest.raises((LeaseLost, IntegrityError)), transaction.atomic():
        loser.write()
    assert fresh(parcel).revision == 2


def test_a_step_that_is_left_twice_at_once_is_left_once(handler: SetHandler) -> None:
    """Both events would leave the step; the second finds the step behind it."""
    handler(PackParcel, taking)
    parcels = [underway(f"P-{number}") for number in range(6)]
    for parcel in parcels:
        for _ in range(2):
            accept(parcel, ParcelDelivered(parcel.correlation_key))
    taken = [events.claim("default", name, 6, 10) for name in ("A", "B")]
    calls = [
        partial(deliver_claimed, claimed.work) for batch in taken for claimed in batch
    ]
    results = together(*calls)
    finish()

    assert raised(results) == []
    for parcel in parcels:
        assert (fresh(parcel).status, parcel.revision) == (Status.COMPLETED, 3)
        ends = parcel.events.filter(type="ParcelDelivered")
        verdicts = ends.order_by("verdict").values_list("verdict", flat=True)
        assert list(verdicts) == [Verdict.MOVED, Verdict.UNEXPECTED]


def test_a_follow_up_never_meets_the_old_step(handler: SetHandler) -> None:
    """The event that a command caused is not there before the new step is."""
    handler(PackParcel, lambda command: ParcelPacked(3))
    handler(CountScan, lambda command: ParcelDelivered(command.parcel_id))

    def ship(number: int) -> None:
        key = f"P-{number}"
        for event in (ParcelOrdered(key), ParcelScanned(key, "door")):
            send_event(event, id=f"{type(event)} {key}", correlation_key=key)
            drain()

    results = together(*[partial(ship, number) for number in range(10)])
    finish()

    assert raised(results) == []
    assert ProcessInstance.objects.filter(status=Status.COMPLETED).count() == 10
    followed = InboxEvent.objects.filter(source="command")
    assert followed.count() == 20
    assert not followed.exclude(verdict=Verdict.MOVED).exists()


def test_an_operator_and_events_at_once_keep_the_history_dense() -> None:
    parcel = underway()
    for number in range(8):
        accept(parcel, ParcelScanned("P-1", f"place {number}"))
    assert at_once(drain, drain, *(press(escalate, parcel) for _ in range(8))) == []
    finish()

    assert (fresh(parcel).revision, parcel.escalation_level) == (18, 8)
