"""A process with everything a process manager has: guards, loops, deadlines, events ignored and rejected."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from orchestrator.definition import ProcessManager, after, during, ignore, reject, when
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    CourierBooked,
    LabelTorn,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
    ParcelWeighed,
    RemindPacker,
    TraceParcel,
)

HOUR = timedelta(hours=1)


class Shipping(ProcessManager):
    """Brings a parcel to its receiver."""

    class Step(StrEnum):
        ORDERED = "Ordered"
        PACKING = "Packing"
        ON_THE_WAY = "OnTheWay"
        MISSING = "Missing"
        DELIVERED = "Delivered"

    @dataclass(frozen=True)
    class Data:
        parcel_id: str
        courier: Courier
        note: str = ""
        place: str = ""
        booking: str = ""

    correlation = "parcel_id"

    @staticmethod
    def summary(data: Data) -> str:
        """Like "Parcel P-1"."""
        return f"Parcel {data.parcel_id}"

    transitions = (
        during(Step.ORDERED, when(ParcelOrdered).issue(PackParcel).go_to(Step.PACKING)),
        during(
            Step.PACKING,
            when(ParcelPacked, courier=Courier.OWN).go_to(Step.ON_THE_WAY),
            when(ParcelPacked, courier=Courier.PARTNER)
            .issue(BookCourier)
            .go_to(Step.ON_THE_WAY),
            ignore(ParcelWeighed),
            reject(LabelTorn),
            after(HOUR).issue(RemindPacker),
            after(2 * HOUR, courier=Courier.PARTNER).escalate(),
            after(3 * HOUR).escalate(),
        ),
        during(
            Step.ON_THE_WAY,
            when(ParcelScanned).issue(CountScan),
            when(CourierBooked),
            when(ParcelDelivered).go_to(Step.DELIVERED),
            after(72 * HOUR).issue(TraceParcel).go_to(Step.MISSING),
        ),
        during(
            Step.MISSING,
            when(ParcelScanned).go_to(Step.ON_THE_WAY),
            when(ParcelDelivered).go_to(Step.DELIVERED),
        ),
    )
