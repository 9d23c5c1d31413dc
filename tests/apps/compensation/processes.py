"""The workflows."""

from dataclasses import dataclass
from datetime import timedelta

from orchestrator.definition import (
    Workflow,
    ask,
    each,
    fork,
    join,
    needs,
    repeat,
    route,
    run,
    start,
    step,
    then,
    undo,
    wait,
)
from orchestrator.definition.workflow.rows import FlowRow
from tests.apps.compensation import steps as s
from tests.apps.compensation.steps import Answer, Traveller, VisaGranted
from tests.services.declared import declared

RELEASED = (undo(s.flight, by=s.release_flight), undo(s.hotel, by=s.release_hotel))


class Trip(Workflow):
    """Flight and hotel at once, then an invoice that somebody approves."""

    Input = Traveller
    correlation = "name"
    approve = ask("approve", Answer)
    flow = (
        fork(s.plan, into=[s.flight, s.hotel]),
        join(s.flight, s.hotel, into=s.invoice),
        then(s.invoice, approve, s.deliver),
    )


class Undoable(Workflow):
    """The same, and what was booked is released when it fails or is cancelled."""

    Input = Traveller
    flow = (*Trip.flow, *RELEASED)


class Hasty(Workflow):
    """Two branches; when one fails the other is cancelled."""

    Input = Traveller
    approve = ask("approve", Answer, deadline=timedelta(days=1))
    flow = (
        fork(s.plan, into=[s.flight, s.hotel]),
        then(s.hotel, approve),
        join(s.flight, approve, into=s.rest, on_failure="fail_fast"),
    )


class Careful(Workflow):
    """A seat is booked, and given back, in the commit that tells of it; that is tried twice, on a queue of its own."""

    Input = Traveller
    flow = (
        then(s.plan, step(s.flight, transactional=True), s.insure),
        undo(s.flight, by=step(s.give_back, "return the seat", retries=1, queue="press")),
    )  # fmt: skip


class Strict(Workflow):
    """The branches of a join that fails fast can be undone; what follows it fails."""

    Input = Traveller
    flow = (
        fork(s.plan, into=[s.flight, s.hotel]),
        join(s.flight, s.hotel, into=s.rest, on_failure="fail_fast"),
        *RELEASED,
    )


class Group(Workflow):
    """A room for each night, two at once at most; rooms can be freed again."""

    Input = Traveller
    flow = (
        each(s.rooms, over="", do=s.reserve, into=s.total, item="room", window=2),
        then(s.total, s.pay),
        undo(s.reserve, by=s.free),
        undo(s.pay, by=s.refund),
    )


class Block(Workflow):
    """The same without undoing; one room less is no trouble."""

    Input = Traveller
    flow = (
        each(s.rooms, over="", do=s.reserve, into=s.total, item="room", window=2, tolerate=1),
        then(s.total, s.pay),
    )  # fmt: skip


class Hunt(Workflow):
    """Searches until something is found."""

    Input = Traveller
    flow = (
        repeat(s.search, until=s.found, at_most=4, then=s.choose),
        then(s.choose, s.rest),
    )


class Search(Workflow):
    """The same; each search can be forgotten."""

    Input = Traveller
    flow = (*Hunt.flow, undo(s.search, by=s.forget_search))


def is_long(plan: s.Plan) -> bool:
    if plan.nights < 0:
        raise ValueError("time does not run backwards")
    return plan.nights > 5


class Choice(Workflow):
    """Long trips fly, others have only a hotel."""

    Input = Traveller
    flow = (
        route(s.plan, on="city", to={"Osaka": s.flight, "Nara": s.hotel}),
        join(s.flight, s.hotel, into=s.rest),
    )


class Visa(Workflow):
    """Waits for the consulate."""

    Input = Traveller
    correlation = "name"
    flow = (then(s.apply, wait(VisaGranted, gives="visa"), s.show),)


first, second = wait(VisaGranted, "first"), wait(VisaGranted, "second")


class TwoVisas(Workflow):
    """Waits twice for the same event, at once."""

    Input = Traveller
    flow = (fork(s.apply, into=[first, second]), join(first, second, into=s.show_both))


reminded = wait(
    VisaGranted, "reminded", gives="visa", deadline=timedelta(days=2), late=s.remind
)


class Patient(Workflow):
    """Waits two days, then goes another way."""

    Input = Traveller
    flow = (then(s.apply, reminded, s.show), join(s.show, s.remind, into=s.close))


class Pressed(Workflow):
    """Waits two days, then tells people."""

    Input = Traveller
    flow = (
        then(s.apply, wait(VisaGranted, gives="visa", deadline=timedelta(days=2)), s.show),
    )  # fmt: skip


class Asked(Workflow):
    """Asks for two days, then rests."""

    Input = Traveller
    answer = ask("answer", Answer, deadline=timedelta(days=2), late=s.rest)
    flow = (then(s.apply, answer, s.travel),)


class Countries(Workflow):
    """Waits for as many consulates as there are nights, one after the other."""

    Input = Traveller
    correlation = "name"
    waits_for = (VisaGranted,)

    @staticmethod
    def flow(input: Traveller) -> list[FlowRow]:
        visas = [wait(VisaGranted, f"visa_{n + 1}") for n in range(input.nights)]
        return [then(s.apply, *visas, s.travel)]


@dataclass(frozen=True)
class Way:
    """The input of a leg."""

    city: str
    days: int


class Leg(Workflow):
    """A part of a tour."""

    Input = Way
    correlation = "city"
    flow = (
        then(s.drive, ask("look", Answer), s.arrive),
        undo(s.drive, by=s.drive_back),
    )


leg = run(Leg, "leg")


class Tour(Workflow):
    """A tour with one leg."""

    Input = Traveller
    flow = (
        start(s.city, s.days),
        needs(leg, [s.city, s.days]),
        then(leg, s.pack),
        undo(s.pack, by=s.unpack),
    )


wake = step(s.apply, "wake")


class Detour(Workflow):
    """A leg beside a nap; what is over first wins, the other is given up."""

    Input = Traveller
    flow = (
        start(s.city, s.days, s.rest),
        needs(leg, [s.city, s.days]),
        then(s.rest, wake),
        join(leg, wake, into=s.home, wait_for="any", rest="cancel"),
    )


scout, both = step(s.apply, "scout"), step(s.apply, "both")
granted = wait(VisaGranted, "granted")


class Shortcut(Workflow):
    """Two ways that come together, or the consulate: what is over first wins, the other is given up."""

    Input = Traveller
    approve = ask("approve", Answer)
    flow = (
        start(scout, approve, granted),
        join(scout, approve, into=both),
        join(both, granted, into=s.rest, wait_for="any", rest="cancel"),
        then(s.rest, s.search),
    )


WORKFLOWS = declared(globals())
