"""A letter in several versions: steps are renamed, added before what comes, added behind what has been, and removed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from orchestrator.definition import (
    Event,
    Workflow,
    ask,
    join,
    migrates_from,
    step,
    then,
    wait,
)
from orchestrator.definition.workflow.rows import FlowRow
from tests.services.declared import declared

NAME = "letter"


class Approved(Event):
    letter: str


class Verdict(StrEnum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Order:
    letter: str
    pages: int = 2


@dataclass(frozen=True)
class LongOrder:
    letter: str
    pages: int = 2
    language: str = "en"


def draft(letter: str) -> str:
    return f"Dear {letter}"


def illustrate(letter: str) -> str:
    return f"picture for {letter}"


def typeset(draft: str) -> str:
    return f"<{draft}>"


def proofread(draft: str) -> str:
    return draft.upper()


def post(letter: str) -> str:
    return f"posted {letter}"


def measured(letter: str) -> int:
    """Gives another form than it did."""
    return len(letter)


approval = wait(Approved, name="approval")
"""Anybody's."""


class Letter(Workflow):
    """Drafted, approved, posted."""

    Input = Order
    name = NAME
    correlation = "letter"
    flow: ClassVar[tuple[FlowRow, ...]] = (then(draft, approval, post),)


class LetterTypeset(Workflow):
    """The draft has another name; after the approval it is typeset; its input has a field more."""

    Input = LongOrder
    name = NAME
    version = 2
    correlation = "letter"
    written = step(draft, "written", gives="draft")
    migrations = (migrates_from(1, steps={"draft": "written"}),)
    flow = (then(written, approval, typeset, post),)


class LetterProofread(Letter):
    """A step comes before what most processes wait for already."""

    name = NAME
    version = 3
    flow = (then(draft, proofread, approval, post),)


class LetterInParallel(Letter):
    """The picture is made beside the draft; both come together."""

    name = NAME
    version = 4
    flow = (join(draft, illustrate, into=approval), then(approval, post))


class LetterPostedAtOnce(Letter):
    """Nobody approves it: there is nothing that the wait could be."""

    name = NAME
    version = 5
    flow = (then(draft, post),)


measure = step(measured, "draft")


class LetterMeasured(Letter):
    """The draft's result is of another form."""

    name = NAME
    version = 6
    flow = (then(measure, approval, post),)


decision = ask("approval", Verdict)


class LetterDecided(Letter):
    """Somebody decides what an event has said."""

    name = NAME
    version = 7
    flow = (then(draft, decision, post),)


class LetterWithoutDraft(Letter):
    """Nothing is drafted any more."""

    name = NAME
    version = 8
    flow = (then(approval, post),)


ALL = declared(globals())
