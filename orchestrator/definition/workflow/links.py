"""The links between the steps of a workflow, and which of them a result takes.

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

    `value` or `case` say when a case is taken; `error` which errors take an error link, and `group` which vertices are
    cancelled then. `row` is where it is written.
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
        """Whether it is taken instead of all others when its source fails or misses its deadline."""
        return self.kind in ("error", "deadline")


@dataclass(eq=False, slots=True)
class Choice:
    """One row's choice among the links of a vertex, by its result.

    Without cases all are. `on` names the field of the result that is compared; `exclusive` takes the first that fits.
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
        """The links that a result takes.

        Args:
            result: of the step.
            step: its name, for the message.

        Raises:
            NoCase: the row must take one, and none fits.
            Exception: whatever a predicate raises.
        """
        if not self.conditional:
            return list(self.links)
        fitting = (link for link in self.links if self._fits(link, result))
        if found := list(islice(fitting, 1 if self.exclusive else None)):
            return found  # an exclusive choice asks no further conditions
        if self.default is not None:
            return [self.default]
        if self.exclusive:
            self.refuse(result, step, self.row)
        return []

    def refuse(self, result: Any, step: str, rows: str) -> NoReturn:
        """Refuses a result that takes no link of these rows.

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
    """A repeated sequence. `back` begins another visit; all other links leave the loop."""

    steps: tuple[str, ...]
    until: ResultPredicate
    at_most: int
    back: Link
    then: Link
    otherwise: Link | None
    row: str = ""

    @property
    def exits(self) -> list[Link]:
        """The ways on from its last step."""
        return [self.then, *([self.otherwise] if self.otherwise is not None else [])]

    def onward(self, result: Any, visit: int) -> Link:
        """The link that the last step takes.

        Raises:
            NoCase: the bound is reached and there is no other way.
            Exception: whatever the predicate raises.
        """
        if self.until(result):
            return self.then
        if visit < self.at_most:
            return self.back
        if self.otherwise is None:
            raise NoCase(f"{self.row}: still not so after {visit} visits")
        return self.otherwise
