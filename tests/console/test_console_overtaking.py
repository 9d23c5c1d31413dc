"""A process's history names the events that went ahead of one received before them."""

import pytest

from monitoring.process.revision.overtaking import find_overtaking
from orchestrator import Permanent
from orchestrator.engine.operations import discard
from orchestrator.models import InboxEvent, Verdict
from tests.apps.compensation.fixtures import known, trips
from tests.apps.process_managers.desk import early, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    LabelTorn,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.services.asking import asked
from tests.services.client import Read
from tests.services.reading import plain

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "trips")]


def ahead_of(event: InboxEvent) -> tuple[list[str], int] | None:
    """Return what the history says went ahead of an event."""
    event.refresh_from_db()
    assert event.process is not None
    found = find_overtaking(event.process, [event]).get(event.pk)
    return (found.types, found.more) if found is not None else None


def test_a_parked_event_is_named_with_what_went_ahead(page_of: Read) -> None:
    parcel = place()
    scan = tell(parcel, ParcelScanned("P-1", "Kobe"))
    assert scan.verdict == Verdict.PARKED
    assert "overtaken by" not in plain(page_of(parcel))
    tell(parcel, ParcelPacked(3))

    assert ahead_of(scan) == (["ParcelPacked"], 0)
    assert plain(page_of(parcel)).count("overtaken by ParcelPacked") == 1


def test_what_still_waits_names_the_first_and_counts_the_rest() -> None:
    parcel = underway()
    packed = tell(parcel, ParcelPacked(4))
    for number in range(5):
        tell(parcel, ParcelScanned("P-1", f"place {number}"))

    assert packed.verdict == Verdict.PARKED
    assert ahead_of(packed) == (["ParcelScanned"] * 3, 2)


def test_an_event_that_has_failed_is_overtaken(handler: SetHandler) -> None:
    def refuse(command: CountScan) -> None:
        raise Permanent("no such place")

    parcel = underway()
    handler(CountScan, refuse)
    scan = tell(parcel, ParcelScanned("P-1", "Atlantis"))
    tell(parcel, ParcelDelivered("P-1"))

    assert scan.verdict == Verdict.FAILED
    assert ahead_of(scan) == (["ParcelDelivered"], 0)


def test_what_was_put_aside_is_overtaken_only_by_what_came_until_then() -> None:
    parcel = underway()
    packed = tell(parcel, ParcelPacked(4))
    tell(parcel, ParcelScanned("P-1", "Kobe"))
    discard(packed.pk, request=asked())
    tell(parcel, ParcelDelivered("P-1"))

    assert ahead_of(packed) == (["ParcelScanned"], 0)


def test_the_start_goes_ahead_of_what_came_before_it() -> None:
    packed = early("P-1", ParcelPacked(3))
    early("P-1", ParcelOrdered("P-1"))

    assert ahead_of(packed) == (["ParcelOrdered"], 0)


def test_events_in_their_order_overtake_nothing() -> None:
    parcel = place()
    torn = tell(parcel, LabelTorn())
    tell(parcel, ParcelPacked(3))
    tell(parcel, ParcelScanned("P-1", "Kobe"))

    assert torn.verdict == Verdict.REJECTED
    assert find_overtaking(parcel, parcel.events.all()) == {}
