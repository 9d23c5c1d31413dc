"""The steps. Each writes in the journal, and fails as long as the journal says so."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from django.db import connection

from orchestrator.definition import Event
from tests.apps.compensation import journal


@dataclass(frozen=True)
class Traveller:
    """The input of most of these workflows."""

    name: str = "Ito"
    nights: int = 2


class Answer(StrEnum):
    """What may be answered when a workflow asks."""

    YES = "yes"
    NO = "no"


@dataclass(frozen=True)
class Plan:
    """Where a trip goes."""

    city: str
    nights: int


class VisaGranted(Event):
    """The consulate has decided."""

    number: str


during: dict[str, Callable[[], object]] = {}
"""What else happens while a step runs."""


def plan(name: str, nights: int) -> Plan:
    journal.do("plan")
    return Plan("Nara" if nights < 5 else "Osaka", nights)


def flight(plan: Plan) -> str:
    if "flight" in during:
        during["flight"]()
    journal.do("flight")
    return f"flight to {plan.city}"


def hotel(plan: Plan) -> str:
    journal.do("hotel")
    return f"{plan.nights} nights in {plan.city}"


def release_flight(flight: str) -> None:
    journal.undo("release_flight", f"release {flight}")


def insure(flight: str) -> str:
    journal.do("insure")
    return f"{flight}, insured"


def give_back(flight: str) -> None:
    inside = "inside" if connection.in_atomic_block else "outside"
    journal.undo("give_back", f"{flight}, {inside} a transaction")


def release_hotel(hotel: str) -> None:
    journal.undo("release_hotel", f"release {hotel}")


def invoice(flight: str, hotel: str) -> int:
    journal.do("invoice")
    return len(flight) + len(hotel)


def deliver(invoice: int) -> str:
    journal.do("deliver")
    return f"delivered {invoice}"


def rooms(nights: int) -> list[int]:
    journal.do("rooms")
    return list(range(1, nights + 1))


def reserve(room: int) -> str:
    journal.do(f"reserve {room}")
    return f"room {room}"


def free(room: int, reserve: str) -> None:
    journal.undo(f"free {room}", f"free {reserve}")


def total(reserve: list[str]) -> int:
    journal.do("total")
    return len(reserve)


def pay(total: int) -> int:
    journal.do("pay")
    return total * 100


def refund(pay: int) -> None:
    journal.undo("refund", f"refund {pay}")


def search(search: int | None = None) -> int:
    journal.do("search")
    return (search or 0) + 1


def found(search: int) -> bool:
    return search >= 3


def forget_search(search: int) -> None:
    journal.undo("forget_search", f"forget {search}")


def choose(search: int) -> int:
    journal.do("choose")
    return search


def apply(name: str) -> str:
    journal.do("apply")
    if "apply" in during:
        during["apply"]()
    return name


def travel(apply: str) -> str:
    journal.do("travel")
    return f"{apply} is away"


def show(visa: VisaGranted) -> str:
    journal.do("show")
    return visa.number


def show_both(first: VisaGranted, second: VisaGranted) -> list[str]:
    journal.do("show_both")
    return [first.number, second.number]


def remind(apply: str) -> str:
    journal.do("remind")
    return f"reminded {apply}"


def close(show: str | None, remind: str | None) -> str:
    journal.do("close")
    return show or remind or ""


def pack(leg: str) -> str:
    journal.do("pack")
    return f"packed for {leg}"


def unpack(pack: str) -> None:
    journal.undo("unpack")


def drive(city: str, days: int) -> str:
    journal.do("drive")
    return f"{days} days to {city}"


def drive_back(drive: str) -> None:
    journal.undo("drive_back", f"back from {drive}")


def arrive(drive: str) -> str:
    journal.do("arrive")
    return f"arrived after {drive}"


def city(name: str) -> str:
    journal.do("city")
    return "Kobe"


def days(nights: int) -> int:
    journal.do("days")
    return nights


def home(leg: str | None, wake: str | None) -> str:
    journal.do("home")
    return leg or wake or ""


def rest(name: str) -> str:
    journal.do("rest")
    return "rested"
