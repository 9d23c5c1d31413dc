"""What happens to parcels, and what is to be done with them."""

from enum import StrEnum

from orchestrator.definition import Command, Event


class Courier(StrEnum):
    OWN = "own"
    PARTNER = "partner"


class ParcelOrdered(Event):
    parcel_id: str
    courier: Courier = Courier.OWN
    note: str = ""


class ParcelPacked(Event):
    weight: int


class ParcelWeighed(Event):
    weight: int


class LabelTorn(Event):
    pass


class CourierBooked(Event):
    booking: str


class ParcelScanned(Event):
    parcel_id: str
    place: str


class ParcelDelivered(Event):
    parcel_id: str


class DepotOpened(Event):
    """Something that belongs to no process at all."""

    depot: str


class PackParcel(Command):
    parcel_id: str
    note: str


class BookCourier(Command):
    parcel_id: str
    note: str


class RemindPacker(Command):
    parcel_id: str


class CountScan(Command):
    parcel_id: str
    place: str


class TraceParcel(Command):
    parcel_id: str
