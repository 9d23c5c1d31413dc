"""What the engine writes, row by row, in many scenarios: all of it is as `tests/data/written_rows.txt` says.

Other tests say what must be so, and read a few columns. This one tells of each column, and each bell, that has changed.
`PROCESSION_WRITE_ROWS=yes` writes the file anew: each difference in it has to be meant.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from orchestrator import Permanent, Retry, send_event
from orchestrator.definition import Workflow
from orchestrator.engine.operations import (
    cancel,
    pause,
    redeliver,
    redo,
    resume,
    retry,
)
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.testing import pass_time, run
from tests.apps.compensation import processes as c
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import faults
from tests.apps.compensation.rallies import RALLIES
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns import failing, ignoring, limits
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished, go_on, insist, launch
from tests.apps.patterns.fixtures import flows
from tests.apps.process_managers import messages as m
from tests.apps.process_managers.desk import accept, early, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler, handler, parcels
from tests.engine.test_workflow_patterns import CASES
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.operated import decided, operated, skipped
from tests.services.written_rows import bells, unlike_before

__all__ = ["bells", "flows", "handler", "known", "parcels", "trips"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("flows", "parcels", "trips", "offers"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="one database is enough"),
]

offers = knowing(
    *(ignoring.Race, ignoring.Loud, ignoring.Both, ignoring.Together),
    *(ignoring.Rounds, ignoring.Guarded),
    autouse=False,
)
BAD = Permanent("it cannot be done")

VISA = VisaGranted("V-1")
OFFERS = ignoring.OfferCame("O-1", "A"), ignoring.OfferCame("O-1", "B")
SIGNED = [ignoring.OfferSigned("O-1", form) for form in ("bad", "good")]


def failed(definition: type[Workflow], *steps: str, given: Any = ()) -> ProcessInstance:
    """Run a workflow in which these steps fail for good."""
    faults.update(dict.fromkeys(steps, BAD))
    process = finished(definition, *given)
    faults.clear()
    return process


def sent(process: ProcessInstance, *events: Any) -> ProcessInstance:
    """Send events to a process, and run what is ready after each."""
    for number, event in enumerate(events):
        send_event(event, id=f"event {number}", source="outside", process_id=process.pk)
        go_on(process)
    return process


def together(process: ProcessInstance, *events: Any) -> None:
    for event in events:
        accept(process, event)
    run()


def in_days(days: float) -> None:
    pass_time(timedelta(days=days))


# Workflows


def redone() -> None:
    operated(redo, finished(c.Trip), "hotel")


def resumed() -> None:
    process = failed(c.Trip, "invoice")
    operated(resume, process, process.revision)


def skipped_with_result() -> None:
    skipped(failed(c.Trip, "hotel"), "hotel", "2 nights in Nara")


def retried() -> None:
    operated(retry, failed(c.Trip, "invoice"))


def paused_and_cancelled() -> None:
    process = finished(c.Undoable)
    operated(pause, process)
    operated(cancel, process)


def child_cancelled() -> None:
    operated(cancel, finished(c.Tour))


def child_decided() -> None:
    finished(c.Tour)
    decided(ProcessInstance.objects.get(name="leg"), "look")


def child_declined() -> None:
    finished(c.Tour)
    faults["arrive"] = BAD
    decided(ProcessInstance.objects.get(name="leg"), "look")


def undone_in_vain() -> None:
    process = finished(c.Undoable)
    faults["release hotel"] = BAD
    operated(cancel, process)


def tried_again() -> None:
    faults["hotel"] = Retry(timedelta(minutes=1), message="the hotel is busy")
    finished(c.Trip)


# Process managers


def delivered() -> None:
    parcel = underway()
    tell(parcel, m.ParcelScanned("P-1", "Nara"), "scan")
    tell(parcel, m.ParcelDelivered("P-1"), "end")
    tell(parcel, m.ParcelDelivered("P-1"), "too late")


def parked_and_taken() -> None:
    parcel = place()
    tell(parcel, m.ParcelDelivered("P-1"), "early")
    tell(parcel, m.ParcelPacked(3), "packed")


def ignored_and_rejected() -> None:
    parcel = place()
    together(parcel, m.ParcelWeighed(3), m.LabelTorn(), m.ParcelPacked(2))


def by_key() -> None:
    early("P-1", m.ParcelPacked(3))
    place()
    early("P-1", m.CourierBooked("B-1"))


def past_deadlines() -> None:
    place(courier=m.Courier.PARTNER)
    in_days(1)


def missing() -> None:
    underway()
    in_days(4)


def refused_inside(handler: SetHandler) -> None:
    handler(m.CountScan, _raise)
    parcel = underway()
    tell(parcel, m.ParcelScanned("P-1", "Nara"), "scan")
    tell(parcel, m.ParcelDelivered("P-1"), "behind it")


def refused_inside_and_redelivered(handler: SetHandler) -> None:
    refused_inside(handler)
    in_days(1)
    handler(m.CountScan, lambda command: None)
    redeliver(InboxEvent.objects.get(event_id="scan").pk, request=_request())
    run()


def refused_outside(handler: SetHandler) -> None:
    handler(m.BookCourier, _raise, after_commit=True)
    underway(courier=m.Courier.PARTNER)


def refused_outside_and_retried(handler: SetHandler) -> None:
    refused_outside(handler)
    in_days(1)
    handler(m.BookCourier, lambda command: m.CourierBooked("B-1"), after_commit=True)
    operated(retry, ProcessInstance.objects.get())


def paused_events() -> None:
    parcel = place()
    operated(pause, parcel)
    together(parcel, m.ParcelPacked(3), m.ParcelDelivered("P-1"))


def cancelled_manager() -> None:
    parcel = underway()
    operated(cancel, parcel)
    tell(parcel, m.ParcelDelivered("P-1"), "late")


def _raise(command: Any) -> None:
    raise LookupError("no such thing")


def _request() -> Any:
    return asked()


LARGE = {p.FanOut, p.Layered, p.WideFan, p.Windowed, limits.Narrow}
ONE_STOP = {"Rally", "Regretted", "Wary", "Hurried"}

SCENARIOS: dict[str, Callable[..., object]] = {
    **{
        str(case): partial(finished, case.definition, *case.given)
        for case in CASES
        if case.definition not in LARGE
    },
    **{
        f"{one.__name__}: {' '.join(steps) or 'well'}": partial(failed, one, *steps)
        for one, *steps in (
            *((c.Trip,), (c.Trip, "flight"), (c.Trip, "hotel"), (c.Trip, "plan")),
            *((c.Undoable, "flight"), (c.Undoable, "invoice"), (c.Hasty, "flight")),
            *((c.Careful, "insure"), (c.Strict, "hotel"), (c.Group, "pay")),
            *((c.Group, "reserve"), (c.Block, "reserve"), (c.Search, "choose")),
            *((c.Hunt,), (c.Visa,), (c.TwoVisas,), (c.Patient,), (c.Pressed,)),
            *((c.Asked,), (c.Countries,), (c.Tour,), (c.Tour, "drive"), (c.Detour,)),
            *((c.Detour, "drive"), (c.Shortcut,), (c.Shortcut, "scout")),
            *((rally,) for rally in RALLIES if rally.__name__ in ONE_STOP),
        )
    },
    "Visa: granted": lambda: sent(finished(c.Visa), VISA),
    "Visa: granted before": lambda: sent(launch(c.Visa), VISA),
    "TwoVisas: granted": lambda: sent(finished(c.TwoVisas), VISA, VISA),
    "Patient: granted": lambda: sent(finished(c.Patient), VISA),
    "Shortcut: granted": lambda: sent(finished(c.Shortcut), VISA),
    "Countries: granted": lambda: sent(finished(c.Countries), VISA, VISA, VISA),
    "Race: both": lambda: sent(finished(ignoring.Race, "O-1"), *OFFERS),
    "Loud: both": lambda: sent(finished(ignoring.Loud, "O-1"), *OFFERS),
    "Rounds: bad, good": lambda: sent(
        decided(finished(ignoring.Rounds, "O-1")), *SIGNED
    ),
    "Guarded: bad, good": lambda: sent(
        decided(finished(ignoring.Guarded, "O-1")), *SIGNED
    ),
    "Both: bad, good": lambda: sent(finished(ignoring.Both, "O-1"), *SIGNED),
    "Together: one": lambda: sent(finished(ignoring.Together, "O-1"), OFFERS[0]),
    "Flaky": lambda: insist(finished(failing.Flaky, 2)),
    "Flaky, waiting": lambda: finished(failing.Flaky, 2),
    **{
        one.__name__: one
        for one in (
            *(redone, resumed, skipped_with_result, retried, paused_and_cancelled),
            *(child_cancelled, child_decided, child_declined, undone_in_vain),
            *(tried_again, delivered, parked_and_taken, ignored_and_rejected, by_key),
            *(past_deadlines, missing, paused_events, cancelled_manager),
        )
    },
}
WITH_HANDLERS = (
    *(refused_inside, refused_inside_and_redelivered),
    *(refused_outside, refused_outside_and_retried),
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_row_is_as_before(name: str, bells: list[str]) -> None:
    SCENARIOS[name]()
    assert unlike_before(name, bells) == []


@pytest.mark.parametrize("scenario", WITH_HANDLERS, ids=lambda one: one.__name__)
def test_each_row_about_a_command_is_as_before(
    scenario: Callable[[SetHandler], None], handler: SetHandler, bells: list[str]
) -> None:
    scenario(handler)
    assert unlike_before(scenario.__name__, bells) == []
