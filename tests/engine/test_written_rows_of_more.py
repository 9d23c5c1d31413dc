"""The same as `test_written_rows`: maps, sub-processes, loops, polls, sleeps, reactions, and many processes at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from orchestrator import (
    Permanent,
    Poll,
    ProcessStart,
    Skip,
    send_event,
    start_processes,
)
from orchestrator.definition import (
    StepContext,
    Workflow,
    sleep,
    step,
    then,
)
from orchestrator.engine.operations import cancel, pause, redo, retry, unpause
from orchestrator.models import ProcessInstance
from orchestrator.testing import failing, pass_time, replaced, run
from tests.apps.compensation import processes as c
from tests.apps.compensation.fixtures import known, trips
from tests.apps.ladder import processes as ladder
from tests.apps.nested_maps import processes as nested
from tests.apps.ordered_commands import handlers
from tests.apps.ordered_commands import processes as ordered
from tests.apps.patterns import failing as failures
from tests.apps.patterns import patterns as p
from tests.apps.patterns import rounds, starving
from tests.apps.patterns.desk import finished, go_on, insist, launch
from tests.apps.patterns.fixtures import flows
from tests.apps.pausing import processes as pausing
from tests.apps.process_managers import messages as m
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import parcels
from tests.apps.subprocess_maps import processes as fleets
from tests.services.crews import knowing
from tests.services.operated import decided, operated
from tests.services.written_rows import bells, unlike_before

__all__ = ["bells", "flows", "known", "parcels", "trips"]

assert handlers.__name__  # importing it has registered them
BAD = Permanent("it cannot be done")


@dataclass(frozen=True)
class Given:
    number: int = 1


def ask_outside(number: int, context: StepContext) -> int:
    saved = int(str(context.saved or 0))
    if saved < number:
        context.save(saved + 1)
        context.progress(saved, number, "not yet")
        raise Poll(timedelta(minutes=1), within=timedelta(hours=1), message="not yet")
    return saved


def tell(ask_outside: int) -> str:
    return f"it took {ask_outside}"


class Polling(Workflow):
    Input = Given
    flow = (then(ask_outside, tell),)


def before(number: int) -> int:
    return number


def after(before: int) -> int:
    return before


_nap = sleep(timedelta(days=1), "nap")


class Napping(Workflow):
    Input = Given
    flow = (then(before, _nap, after),)


def may_fail(number: int) -> int:
    if number < 0:
        raise BAD
    if number == 0:
        raise Skip("there is nothing")
    return number


def hear(may_fail: int | None) -> int | None:
    return may_fail


class Optional(Workflow):
    Input = Given
    flow = (then(step(may_fail, optional=True, retries=0), hear),)


more = knowing(
    *(Polling, Napping, Optional, fleets.Fleet, fleets.Passage),
    *(nested.Inventory, nested.Stocktaking, ladder.Question, ladder.Complaint),
    *(ordered.Publishing, *pausing.WORKFLOWS),
    autouse=False,
)
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("flows", "parcels", "trips", "more"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="one database is enough"),
]


def begun(definition: Any, *given: Any) -> Callable[[], object]:
    return lambda: finished(definition, *given)


def all_ships_fail() -> None:
    with failing(fleets.sail, BAD):
        finished(fleets.Fleet, 3)


def failed_ships_are_retried() -> None:
    all_ships_fail()
    operated(retry, ProcessInstance.objects.get(parent=None))


def failed_ship_is_retried() -> None:
    all_ships_fail()
    first = ProcessInstance.objects.exclude(parent=None).order_by("pk")[0]
    operated(retry, first)


def signed_shelves() -> None:
    finished(nested.Inventory, ["A", "B"], 2)
    for number, shelf in enumerate(ProcessInstance.objects.exclude(parent=None)):
        signed = nested.Signed("Ito")
        send_event(signed, id=f"{number}", source="shop", process_id=shelf.pk)
    run()


def broken_box() -> None:
    finished(nested.Inventory, ["A", "B"], 2, "A/1")


def broken_box_and_cancelled() -> None:
    broken_box()
    operated(cancel, ProcessInstance.objects.get(parent=None))


def begun_by(event: Any, definition: Any) -> Callable[[], object]:
    def begin() -> None:
        start_processes([ProcessStart(definition, event, id="1")])
        run()

    return begin


def answered_late() -> None:
    begun_by(ladder.QuestionAsked("why", urgent=True), ladder.Question)()
    pass_time(hours=3.5)
    answered = ladder.QuestionAnswered("why")
    send_event(answered, id="a", correlation_key="why")
    run()


def published() -> None:
    begun_by(ordered.BookClosed("Kokoro"), ordered.Publishing)()


def published_in_vain() -> None:
    begun_by(ordered.BookClosed("Kokoro", "lasting"), ordered.Publishing)()


def many_started() -> None:
    orders = [m.ParcelOrdered(f"P-{n}", m.Courier.PARTNER) for n in range(3)]
    start_processes([ProcessStart("shipping", one) for one in orders])
    run()


def many_events() -> None:
    parcels = [underway(f"P-{n}") for n in range(4)]
    for number, parcel in enumerate(parcels):
        accept(parcel, m.ParcelScanned(f"P-{number}", "Nara"))
        accept(parcel, m.ParcelDelivered(f"P-{number}"))
        accept(parcel, m.ParcelScanned(f"P-{number}", "Kobe"))
    run()


def many_packed() -> None:
    parcels = [place(f"P-{n}", m.Courier.PARTNER) for n in range(4)]
    for parcel in parcels:
        accept(parcel, m.ParcelPacked(3))
    run()


def reaction() -> None:
    send_event(m.DepotOpened("Nara"), id="1")
    run()


def unknown_event() -> None:
    send_event(m.LabelTorn(), id="1", correlation_key="P-9")
    run()


def paused_whole() -> None:
    process = finished(pausing.Top)
    operated(pause, process)
    pass_time(days=1)
    operated(unpause, process)


def cancelled_whole() -> None:
    operated(cancel, finished(pausing.Top))


def decided_below() -> None:
    finished(pausing.Top)
    decided(ProcessInstance.objects.get(name="bottom"), "sure")


def paused_map() -> None:
    process = launch(pausing.Squares, 4)
    pausing.during["square 1"] = lambda: operated(pause, process)
    go_on(process)
    pausing.during.clear()
    operated(unpause, process)


def negative_square_redone() -> None:
    process = finished(p.Windowed, [1, -2, 3, 4, 5])
    with replaced(p.square, lambda item: 0):
        operated(retry, process)


def redone_among_readers() -> None:
    process = finished(c.Trip)
    operated(redo, process, "plan")
    operated(redo, process, "flight")


def undone_after_the_end() -> None:
    operated(cancel, finished(c.Undoable))
    insist(ProcessInstance.objects.get())


SCENARIOS: dict[str, Callable[..., object]] = {
    "polls twice": begun(Polling, 2),
    "polls for too long": begun(Polling, 100),
    "naps": begun(Napping),
    "optional: well": begun(Optional, 1),
    "optional: skipped": begun(Optional, 0),
    "optional: failed": begun(Optional, -1),
    "doubting": begun(failures.Doubting, 1),
    "doubting for ever": begun(failures.Doubting, -1),
    "judging": begun(failures.Judging, "bad"),
    "fleet": begun(fleets.Fleet, 3),
    "fan-out of a negative number": begun(p.FanOut, [1, -2, 3]),
    "windowed, of a negative number": begun(p.Windowed, [1, -2, 3, 4, 5]),
    "tolerant, of two negative numbers": begun(p.Tolerant, [-1, -2, 3]),
    "child that fails": begun(p.WithChild, [-1]),
    "child that fails is caught": begun(p.CatchChild, [-1]),
    "shrinking": begun(rounds.Shrinking, [1, 2, 3]),
    "vanishing": begun(rounds.Vanishing, [1, 2]),
    "starving": begun(starving.Starving, -1),
    "starving, caught": begun(starving.StarvingCaught, -1),
    "starving, undone": begun(starving.StarvingUndone, -1),
    "starving, asked": begun(starving.StarvingAsked, -1),
    "quorum, caught": begun(starving.QuorumCaught, 1),
    "question": begun_by(ladder.QuestionAsked("why"), ladder.Question),
    "complaint": begun_by(ladder.ComplaintMade("late"), ladder.Complaint),
    **{
        one.__name__: one
        for one in (
            *(all_ships_fail, failed_ships_are_retried, failed_ship_is_retried),
            *(signed_shelves, broken_box, broken_box_and_cancelled, answered_late),
            *(published, published_in_vain, many_started, many_events, many_packed),
            *(reaction, unknown_event, paused_whole, cancelled_whole, decided_below),
            *(paused_map, negative_square_redone, redone_among_readers),
            undone_after_the_end,
        )
    },
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_row_is_as_before(name: str, bells: list[str]) -> None:
    SCENARIOS[name]()
    assert unlike_before(name, bells) == []
