"""Waits for an answer; who is told of it that there is none, and who sees to it then, is named."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from orchestrator.definition import Event, ProcessManager, after, during, when

HOUR = timedelta(hours=1)


class QuestionAsked(Event):
    question: str
    urgent: bool = False


class QuestionAnswered(Event):
    question: str


class Question(ProcessManager):
    """Has people told, one after the other, that a question waits."""

    class Step(StrEnum):
        ASKED = "Asked"
        WAITING = "Waiting"
        ANSWERED = "Answered"

    @dataclass(frozen=True)
    class Data:
        question: str
        urgent: bool = False

    correlation = "question"

    transitions = (
        during(Step.ASKED, when(QuestionAsked).go_to(Step.WAITING)),
        during(
            Step.WAITING,
            when(QuestionAnswered).go_to(Step.ANSWERED),
            after(HOUR).notify("clerk"),
            after(2 * HOUR).notify("clerk", "duty").escalate(),
            after(3 * HOUR, urgent=True).notify("boss"),
            after(4 * HOUR).go_to(Step.ANSWERED),
        ),
    )


class ComplaintMade(Event):
    complaint: str


class ComplaintSettled(Event):
    complaint: str


class Complaint(ProcessManager):
    """Goes from one person to the next while nobody settles it."""

    class Step(StrEnum):
        MADE = "Made"
        OPEN = "Open"
        SETTLED = "Settled"

    @dataclass(frozen=True)
    class Data:
        complaint: str

    correlation = "complaint"

    transitions = (
        during(Step.MADE, when(ComplaintMade).go_to(Step.OPEN)),
        during(
            Step.OPEN,
            when(ComplaintSettled).go_to(Step.SETTLED),
            after(HOUR).assign("day-shift"),
            after(2 * HOUR).assign("night-shift").notify("duty"),
            after(3 * HOUR).assign("day-shift").go_to(Step.SETTLED),
        ),
    )
