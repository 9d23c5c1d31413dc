"""The scenarios of the copied processes: the examples on good days and bad ones, with their shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bench.seed.written import WrittenRows, read_rows
from examples.order_listing.handlers import request_external_creation
from examples.order_listing.messages import (
    Destination,
    ExternalOrderCreated,
    ExternalOrderRejected,
    ListedOnExternal,
    OrderCreated,
)
from examples.order_listing.processes import OrderListing
from examples.readers import Film, Moment, Speech, Tone, tone_of
from examples.support_inquiry import reading
from examples.support_inquiry.findings import AgentDecision, CustomerReplied
from examples.support_inquiry.processes import SupportInquiry
from examples.video_analysis import sight, sound
from examples.video_analysis.processes import VideoAnalysis
from orchestrator.definition import StepContext
from orchestrator.engine import operations
from orchestrator.engine.processes.events import send_event
from orchestrator.exceptions import Permanent, Retry
from orchestrator.queue import suppress_all_wakes
from orchestrator.testing import Process, failing, replaced, run, started
from orchestrator.testing.process import Anybody

KEY = "SEED-?????????"
"""The correlation key of the recorded process; its copies have their numbers in the place of the marks."""

EXTERNAL, INTERNAL, BOTH = Destination.EXTERNAL, Destination.INTERNAL, Destination.BOTH
AWAY = Permanent("the exchange answered HTTP 403")
BUSY = Retry(message="the exchange answered HTTP 503")


@dataclass(frozen=True)
class Scenario:
    """A way for a process to reach its state.

    Args:
        play: plays it; may return the rows of a moment before the end.
        share: how often it occurs, in parts of all shares.
    """

    play: Callable[[], object]
    share: float


# Orders


def order(destination: Destination) -> Process:
    """Enter an order; the exchange has taken one that is for it."""
    event = OrderCreated(KEY, destination, "50 MWh base load, Tokyo area")
    return started(OrderListing, event, id=KEY)


def listed(destination: Destination) -> Process:
    process = order(destination)
    if destination != INTERNAL:
        process.send(created(), id=f"created {KEY}")
    return process


def created() -> ExternalOrderCreated:
    return ExternalOrderCreated(KEY, f"X-{KEY}", "50 MWh base load, Tokyo area")


def rejected_order() -> None:
    order(BOTH).send(ExternalOrderRejected("no such product"), id=f"refused {KEY}")


def refused_call() -> None:
    with failing(request_external_creation, AWAY):
        order(EXTERNAL)


def busy_exchange() -> None:
    with failing(request_external_creation, BUSY):
        order(BOTH)


def early_listing() -> None:
    order(BOTH).send(ListedOnExternal(KEY), id=f"early {KEY}")


def late_rejection() -> None:
    listed(BOTH).send(ExternalOrderRejected("too late"), id=f"refused {KEY}")


def unknown_order() -> None:
    listed(INTERNAL)
    with suppress_all_wakes():
        lost = ListedOnExternal(f"{KEY}-X")
        send_event(lost, id=f"lost {KEY}", source="exchange")
    run()


# Inquiries


def inquiry(text: str, *attachments: str) -> Process:
    given = SupportInquiry.Input(KEY, "Mia Sato", text, list(attachments))
    return started(SupportInquiry, given, id=KEY)


def thanks() -> Process:
    return inquiry("Thank you, everything works very well now!")


def complaint() -> Process:
    return inquiry("My parcel is late again and I am disappointed.")


def overdue() -> None:
    inquiry("Everything is urgent, overdue and broken, cancel it!")


def decided(decision: AgentDecision) -> Process:
    process = complaint()
    process.answer("agent_decides", decision)
    return process


def replied() -> None:
    process = decided(AgentDecision.ASK_CUSTOMER)
    reply = CustomerReplied(KEY, "It is order 4711.")
    process.send(reply, id=f"reply {KEY}")


def unreadable_letter() -> None:
    with failing(reading.read_text, Permanent("no such letters")):
        thanks()


def lost_attachment() -> None:
    with failing(reading.classify, FileNotFoundError("letter.pdf")):
        thanks()


def busy_reader() -> None:
    with failing(reading.read_text, Retry(message="the reader does not answer")):
        thanks()


def being_read() -> WrittenRows:
    """Return the rows of a process in the middle of a step."""
    seen: list[WrittenRows] = []

    def read_text(text: str) -> Tone:
        seen.append(read_rows())
        return tone_of(text)

    with replaced(reading.read_text, read_text):
        thanks()
    return seen[0]


def withdrawn() -> None:
    complaint().cancel()


def on_hold() -> None:
    operated(complaint(), operations.pause)


def escalated() -> None:
    operated(complaint(), operations.escalate)


def operated(process: Process, operation: Callable[..., object]) -> None:
    asked = operations.ActionRequest(Anybody(), key=uuid4(), reason="a customer called")
    with suppress_all_wakes():
        operation(process.id, request=asked)
    run()


# Films


def film() -> None:
    started(VideoAnalysis, VideoAnalysis.Input(f"{KEY}.webm"), correlation_key=KEY)


def damaged_film() -> None:
    with failing(sight.look, Permanent("the film cannot be decoded")):
        film()


def opened(video: str) -> Film:
    return Film(4.0, 480, 270, True)


def seen(video: str, moment: float) -> Moment:
    return Moment(moment, ["Invoice 4711 overdue"], 0, 1.0, "caption beside the file")


def heard(video: str, context: StepContext) -> Speech:
    return Speech("please refund my order", 3.0, "caption beside the file")


def taken(command: Any) -> None:
    """Take the order, as the exchange."""


@contextmanager
def stand_ins() -> Iterator[None]:
    """Replace the exchange and the films."""
    with (
        replaced(request_external_creation, taken),
        replaced(sight.open_film, opened),
        replaced(sight.look, seen),
        replaced(sound.hear_track, heard),
    ):
        yield


SCENARIOS = {
    # Ended processes: most of a system's.
    "listed on the internal market": Scenario(lambda: listed(INTERNAL), 200),
    "listed on the exchange": Scenario(lambda: listed(EXTERNAL), 180),
    "listed on both markets": Scenario(lambda: listed(BOTH), 180),
    "refused by the exchange": Scenario(rejected_order, 40),
    "thanked": Scenario(thanks, 130),
    "answered": Scenario(lambda: decided(AgentDecision.ANSWER), 90),
    "refunded": Scenario(lambda: decided(AgentDecision.REFUND), 30),
    "asked and answered": Scenario(replied, 30),
    "handed to the lead": Scenario(overdue, 20),
    "withdrawn": Scenario(withdrawn, 10),
    "analysed": Scenario(film, 40),
    # Processes that go on by themselves, or wait for somebody outside.
    "waiting for the exchange": Scenario(lambda: order(BOTH), 15),
    "waiting for a decision": Scenario(complaint, 15),
    "waiting for a customer": Scenario(lambda: decided(AgentDecision.ASK_CUSTOMER), 8),
    "with an early listing": Scenario(early_listing, 2),
    "being read": Scenario(being_read, 3),
    "tried again by the order": Scenario(busy_exchange, 1.5),
    "tried again by the inquiry": Scenario(busy_reader, 1.5),
    # Processes that need a person.
    "on hold": Scenario(on_hold, 0.5),
    "escalated": Scenario(escalated, 0.5),
    "refused call": Scenario(refused_call, 1),
    "lost attachment": Scenario(lost_attachment, 1),
    "unreadable letter": Scenario(unreadable_letter, 0.5),
    "damaged film": Scenario(damaged_film, 0.3),
    "refused after the end": Scenario(late_rejection, 0.4),
    "unknown order": Scenario(unknown_order, 0.3),
}
"""The recorded processes, by their states."""
