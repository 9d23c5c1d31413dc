"""Values that the steps of an analysis hand on. Frames stay in the film: only their seconds travel."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """The seconds of a film to look at, so many seconds apart."""

    interval: float
    moments: list[float]


@dataclass(frozen=True)
class Sights:
    """The sights of all moments of a sampling, and how sure they are: 0 to 1."""

    confidence: float
    interval: float
    moments: int
    lines: list[str]
    faces: int
    readers: list[str]


@dataclass(frozen=True)
class Conclusion:
    """The sights to be believed, and the doubts about them."""

    sights: Sights
    doubts: list[str]


@dataclass(frozen=True)
class Analysis:
    """Sights and sounds together."""

    lines: list[str]
    faces: int
    words: str
    language: str
    mood: float
    confidence: float
    doubts: list[str]
    readers: list[str]


@dataclass(frozen=True)
class Page:
    """A text that stays on screen for a while."""

    second: float
    lines: list[str]


@dataclass(frozen=True)
class Report:
    """The output: which pipeline was taken, and its findings in plain words."""

    kind: str
    findings: list[str]
    confidence: float
    doubts: list[str]
    readers: list[str]
