"""What a workflow's picture is made of before it is laid out: parts, and lines between them.

A part is a step, a group of steps, a gate where branches part or meet, or one of the two terminals.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Shape = Literal[
    "step", "map", "wait", "ask", "run", "group", "start", "end", "all", "some", "one"
]

GATES = ("all", "some", "one")
TERMINALS = ("start", "end")


@dataclass(frozen=True)
class Part:
    """Something with a place. `members` are the steps it stands for; a gate or terminal stands for `edges` instead.

    `beside` is what a gate waits for, written at the line that leads on from it.
    """

    id: str
    shape: Shape
    label: str = ""
    detail: tuple[str, ...] = ()
    beside: str = ""
    undo: bool = False
    members: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()

    @property
    def is_step(self) -> bool:
        return bool(self.members)


@dataclass(frozen=True)
class Line:
    """A line between two parts; `edges` are the definition's edges that it stands for."""

    id: str
    source: str
    target: str
    kind: str
    label: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sketch:
    """All parts and lines. `folded` says that some parts stand for several steps, `whole` how many steps there are."""

    parts: tuple[Part, ...]
    lines: tuple[Line, ...]
    whole: int
    folded: bool = False

    @property
    def weight(self) -> int:
        """A measure of how long its layout takes."""
        return len(self.parts) + len(self.lines)

    def steps(self) -> Iterator[Part]:
        """The parts that stand for steps."""
        return (part for part in self.parts if part.is_step)
