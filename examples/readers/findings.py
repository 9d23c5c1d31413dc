"""Results of the readers; `reader` names the one that has read."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator import Permanent


class Unreadable(Permanent):
    """The file is not what its name says, or is damaged; reading it again cannot help."""


@dataclass(frozen=True)
class Text:
    """Lines of text seen in a picture, from the top, and how certain the reader is of them: 0 to 1."""

    lines: list[str]
    certainty: float
    reader: str


@dataclass(frozen=True)
class Speech:
    """Words heard in a recording of so many seconds."""

    words: str
    seconds: float
    reader: str


@dataclass(frozen=True)
class Mood:
    """How a text sounds, from -1 (bad) to 1 (good)."""

    score: float
    reader: str


@dataclass(frozen=True)
class Tone:
    """The language of a text, and how it sounds: -1 (bad) to 1 (good)."""

    language: str
    mood: float
    reader: str


@dataclass(frozen=True)
class Film:
    """A film's length in seconds, its size in pixels, and whether there is something to hear."""

    seconds: float
    width: int
    height: int
    sound: bool


@dataclass(frozen=True)
class Moment:
    """Sights at one second of a film."""

    second: float
    lines: list[str]
    faces: int
    certainty: float
    reader: str


class Progress(Protocol):
    """How a reader tells how far it is; a step hands over `context.progress`."""

    def __call__(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None: ...


def silent(done: float, total: float | None = None, message: str = "") -> None:
    """Progress that nobody follows."""
