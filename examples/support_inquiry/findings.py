"""Values that the steps of an inquiry hand on: its media, their contents, and the conclusions."""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.definition import Event


class Medium(StrEnum):
    """A medium in which an inquiry comes."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    DOCUMENT = "document"


class Priority(StrEnum):
    """How soon somebody has to look."""

    LOW = "low"
    NORMAL = "normal"
    URGENT = "urgent"


class AgentDecision(StrEnum):
    """A decision of an agent."""

    ANSWER = "answer"
    REFUND = "refund"
    ASK_CUSTOMER = "ask_customer"
    ESCALATE = "escalate"


class CustomerReplied(Event):
    """The customer has told us what we asked."""

    ticket: str
    reply: str


@dataclass(frozen=True)
class Classification:
    """The media of an inquiry, and the attachment of each."""

    media: list[Medium]
    image: str = ""
    recording: str = ""
    document: str = ""


@dataclass(frozen=True)
class MergedContext:
    """Everything that an inquiry says, in one place."""

    text: str
    languages: list[str]
    mood: float
    unreadable: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Triage:
    """How urgent an inquiry is, and for what reasons."""

    priority: Priority
    points: int
    reasons: list[str]


@dataclass(frozen=True)
class InquiryOutcome:
    """The outcome of an inquiry."""

    status: str
    message: str
