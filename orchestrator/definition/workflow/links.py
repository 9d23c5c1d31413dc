"""The links between the steps of a workflow, and the choices among them.

A plan may have tens of thousands of links. Slots, without frozen classes, quarter the time to make them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NoReturn

from orchestrator.definition.workflow.rows import (
    Case,
    ErrorTypes,
    FlowRow,
    ResultPredicate,
)
from orchestrator.definition.workflow.steps import Step
from orchestrator.exceptions import NoCase

LinkKind = Literal["flow", "case", "default", "repeat", "error", "deadline"]


@dataclass(eq=False, slots=True)
class Link:
    """A link from one vertex to another.

    `value` or `case` is the condition of a case. `error` are the errors that take an error link, `group` the vertices
    of its `catch`. `row` is the row that declares the link.
    """

    id: str
    source: str
    target: str
    kind: LinkKind = "flow"
    value: Any = None
    case: Case | None = None
    error: ErrorTypes | None = None
    group: tuple[str, ...] = ()
    row: FlowRow | Step | None = None

    @property
    def exceptional(self) -> bool:
        """Whether it replaces all other links of its source after a failure or a missed deadline."""
        return self.kind in ("error", "deadline")


@dataclass(eq=False, slots=True)
class Choice:
    """One row's choice among the links of a vertex, by its result.

    Without cases it takes all links. `on` names the compared field of the result. An `exclusive` choice takes the first
    link that fits.
    """

    links: tuple[Link, ...]
    on: str | None = None
    exclusive: bool = False
    default: Link | None = None
    row: str = ""

    @property
    def conditional(self) -> bool:
        """Whether the result decides which links are taken."""
        return any(link.kind == "case" for link in self.links)

    def taken(self, result: Any, step: str) -> list[Link]:
        """Return the links that a result takes.

        Args:
            result: the result of the step.
            step: the name of the step, for the message.

        Raises:
            NoCase: no link of an exclusive choice fits.
            Exception: a predicate failed.
        """
        if not self.conditional:
            return list(self.links)
        fitting = (link for link in self.links if self._fits(link, result))
        if found := list(islice(fitting, 1 if self.exclusive else None)):
            return found  # an exclusive choice evaluates no further conditions
        if self.default is not None:
            return [self.default]
        if self.exclusive:
            self.refuse(result, step, self.row)
        return []

    def refuse(self, result: Any, step: str, rows: str) -> NoReturn:
        """Refuse a result that takes no link of these rows.

        Raises:
            NoCase: always.
        """
        said = f": {self.on} = {self._value(result)!r:.200}" if self.on else ""
        raise NoCase(
            f"{rows}: no case fits what {step} gave{said}, and there is no otherwise"
        )

    def _fits(self, link: Link, result: Any) -> bool:
        if link.kind != "case":
            return False
        if link.case is not None:
            return bool(link.case.predicate(result))
        value = self._value(result)
        several = isinstance(value, frozenset | set | list | tuple)
        if several and not self.exclusive:
            return link.value in value
        return bool(link.value == value)

    def _value(self, result: Any) -> Any:
        """The compared field; the result itself if the name is empty."""
        return getattr(result, self.on, None) if self.on else result


@dataclass(eq=False, slots=True)
class Loop:
    """A repeated sequence. The link `back` begins another round; all other links leave the loop."""

    steps: tuple[str, ...]
    until: ResultPredicate
    at_most: int
    back: Link
    then: Link
    otherwise: Link | None
    row: str = ""

    @property
    def exits(self) -> list[Link]:
        """The links that leave the loop after its last step."""
        return [self.then, *([self.otherwise] if self.otherwise is not None else [])]

    def onward(self, result: Any, visit: int) -> Link:
        """Return the link that the last step takes.

        Raises:
            NoCase: the last round did not meet the condition, and there is no `otherwise`.
            Exception: the predicate failed.
        """
        if self.until(result):
            return self.then
        if visit < self.at_most:
            return self.back
        if self.otherwise is None:
            raise NoCase(f"{self.row}: still not so after {visit} visits")
        return self.otherwise
