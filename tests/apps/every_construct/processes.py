from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.contrib.auth.models import Group

from orchestrator import Permanent
from orchestrator.definition import (
    Event,
    Failure,
    StepContext,
    Workflow,
    ask,
    catch,
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


class Verdict(StrEnum):
    ACCEPT = "accept"
    REFUSE = "refuse"


class Paid(Event):
    """The customer has paid."""

    ticket: str


class Unreadable(Exception):
    """The text cannot be read."""


@dataclass(frozen=True)
class Draft:
    text: str
    clear: bool


def classify(ticket: str) -> str:
    return f"inquiry {ticket}"


def held_at(place: str) -> Iterator[None]:
    """Go round, a moment each time, as long as somebody holds the reading there: by a group of users of that name."""
    while Group.objects.filter(name=place).exists():
        yield
        time.sleep(0.05)


def read_text(held: bool, trouble: str, context: StepContext) -> str:
    if trouble == "text":
        raise Unreadable("the text is in no known language")
    for part in range(1, 11):
        context.progress(part, 10, f"paragraph {part}")
        for _ in held_at(f"part {part}") if held else ():
            context.progress(part, 10, f"paragraph {part}")
    return "a text"


def find_pages(pages: int) -> list[str]:
    return [f"page {number}" for number in range(1, pages + 1)]


def read_page(page: str, held: bool, trouble: str) -> str:
    for _ in held_at(page) if held else ():
        pass
    if trouble == "page" and page == "page 2":
        raise Permanent("page 2 is torn")
    return page.upper()


def collect(read_page: list[str]) -> str:
    return ", ".join(read_page)


def merge(read_text: str | None, collect: str) -> str:
    return f"{read_text}: {collect}"


def draft(merge: str, context: StepContext) -> Draft:
    return Draft(merge, context.visit >= 2)


def is_clear(draft: Draft) -> bool:
    return draft.clear


def reply(draft: Draft, trouble: str) -> str:
    if trouble == "reply":
        raise ConnectionError("the mail server does not answer")
    return f"sent {draft.text}"


def retract(reply: str) -> None:
    """Takes the reply back."""


def escalate(draft: Draft) -> str:
    return "escalated"


def apologise(error: Failure) -> str:
    return error.message


def book(ticket: str) -> str:
    return f"booked {ticket}"


class Billing(Workflow):
    """Books what an inquiry cost."""

    name = "helpdesk-billing"

    @dataclass(frozen=True)
    class Input:
        ticket: str

    flow = (start(book),)


verdict = ask("verdict", Verdict, deadline=timedelta(days=2), late=escalate)
paid = wait(Paid, "payment", deadline=timedelta(hours=4))
billing = run(Billing, "billing")


class Inquiry(Workflow):
    """Reads an inquiry, has a person decide, replies."""

    name = "helpdesk-inquiry"
    correlation = "ticket"

    @dataclass(frozen=True)
    class Input:
        ticket: str
        pages: int = 3
        held: bool = False
        trouble: str = ""

    flow = (
        start(classify),
        fork(classify, into=[read_text, find_pages]),
        step(read_text, retries={Unreadable: 0}),
        each(
            find_pages,
            over="",
            do=read_page,
            into=collect,
            item="page",
            window=2,
            tolerate=1,
        ),
        catch(read_text, error=Unreadable, to=apologise),
        join(read_text, collect, into=merge),
        then(merge, draft),
        repeat(draft, until=is_clear, at_most=3, then=verdict),
        route(verdict, on="", to={Verdict.ACCEPT: reply, Verdict.REFUSE: escalate}),
        step(reply, retries=0),
        undo(reply, by=retract),
        then(reply, paid, billing),
    )

    @staticmethod
    def summary(input: Input) -> str:
        return f"Inquiry {input.ticket} of {input.pages} pages"


def work(seed: int) -> int:
    return seed + 1


class Lattice(Workflow):
    """Layers of steps, each of which needs two of the layer before: as large as its input says."""

    name = "helpdesk-lattice"
    repair_needs_approval = True

    @dataclass(frozen=True)
    class Input:
        layers: int
        width: int
        seed: int = 0

    @staticmethod
    def flow(input: Input) -> tuple[object, ...]:
        layers = [
            [step(work, f"work_{row}_{place}") for place in range(input.width)]
            for row in range(input.layers)
        ]
        between = [
            needs(
                one, [above[place], above[place - 1]] if place % 3 else [above[place]]
            )
            for above, below in itertools.pairwise(layers)
            for place, one in enumerate(below)
        ]
        return (start(*layers[0]), *between)
