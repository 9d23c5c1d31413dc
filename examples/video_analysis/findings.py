"""What the steps of an analysis hand on. Frames stay in the film: only their seconds travel."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """The seconds of a film to look at, so many seconds apart."""

    interval: float
    moments: list[float]


@dataclass(frozen=True)
class Sights:
    """What was seen in all moments of a sampling, and how sure that is: 0 to 1."""

    confidence: float
    interval: float
    moments: int
    lines: list[str]
    faces: int
    readers: list[str]


@dataclass(frozen=True)
class Conclusion:
    """What is to be believed of the sights, and the doubts about it."""

    sights: Sights
    doubts: list[str]


@dataclass(frozen=True)
class Analysis:
    """What was seen and what was heard, together."""

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
