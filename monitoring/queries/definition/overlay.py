"""What a definition's map says of each step: numbers now, or one figure by which the steps are compared.

An overlay colours steps by five levels. Times are levelled against the longest on the map, failure rates by fixed
limits; the figure itself stands on each step, so that no colour is needed to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from django.utils.translation import gettext as _

from monitoring.diagrams import DiagramState, NodeState
from monitoring.diagrams.painting import HEAT, UNVISITED
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.moments import exact
from monitoring.queries.counts import short
from monitoring.queries.definition.seen import Seen
from monitoring.queries.definition.standing import StepCounts
from monitoring.queries.definition.window import Passed, Window
from monitoring.queries.doing import NOW

LEVELS = 5

RATES = (0.0, 0.01, 0.05, 0.2, 1.0)
"""The failure rates up to which the levels go."""

SIGNS = {"active": "▸", "waiting": "…", "failed": "!", "finished": "✓"}
"""What stands before a number, so that it is told by more than its place and colour."""


@dataclass(frozen=True)
class Figure:
    """What an overlay compares the steps by; `of` gives None for a step that has none in the window."""

    of: Callable[[Passed], float | None]
    said: Callable[[float], str]
    of_time: bool


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return exact(timedelta(seconds=seconds))


def _rate(share: float) -> str:
    return (
        f"{share * 100:.1f} %" if 0 < share < 0.1 else f"{share:.0%}".replace("%", " %")
    )


FIGURES = {
    "median": Figure(lambda passed: passed.quantile(0.5), _time, True),
    "p95": Figure(lambda passed: passed.quantile(0.95), _time, True),
    "failures": Figure(lambda passed: passed.failure_rate, _rate, False),
}

OVERLAYS = ("now", *FIGURES)


def overlay_word(name: str) -> str:
    """An overlay as people read it."""
    words = {
        "now": _("Now"),
        "median": _("Median time in step"),
        "p95": _("95th percentile of the time in step"),
        "failures": _("Failure rate"),
    }
    return words[name]


@dataclass(frozen=True)
class Level:
    """One level of the scale: its number, and what it goes up to, as people read it."""

    number: int
    text: str


@dataclass(frozen=True)
class StepNumbers:
    """What is known of one step, or of several that are drawn as one; as texts, "" for nothing.

    Args:
        id: of the part that is drawn.
        label: as people read it.
        single: whether it is one step, whose processes can be listed.
        texts: numbers by what is done.
        figures: of the overlays.
        never: whether no process was seen in it.
    """

    id: str
    label: str
    single: bool
    texts: Mapping[str, str]
    figures: Mapping[str, str]
    never: bool


@dataclass(frozen=True)
class MapFigures:
    """All that the map says, for one overlay."""

    overlay: str
    standing: StepCounts
    window: Window
    seen: Seen
    sketch: Sketch

    def state(self, chosen: str = "") -> DiagramState:
        """How the picture looks; `chosen` is the step that the list is narrowed to."""
        return DiagramState(
            {part.id: self._node(part, chosen) for part in self.sketch.steps()}
        )

    def scale(self) -> list[Level]:
        """The levels with what they go up to; none where there is nothing to compare."""
        if self.overlay not in FIGURES:
            return []
        said = FIGURES[self.overlay].said
        return [Level(at + 1, f"≤ {said(one)}") for at, one in enumerate(self._limits)]

    def rows(self) -> Iterator[StepNumbers]:
        """The same as a table: each part with all its numbers."""
        for part in self.sketch.steps():
            figures = {
                name: FIGURES[name].said(found[part.id])
                for name, found in self._values.items()
                if part.id in found
            }
            single, never = part.shape != "group", self._never(part)
            yield StepNumbers(
                part.id, part.label, single, self._texts(part), figures, never
            )

    def _node(self, part: Part, chosen: str) -> NodeState:
        texts = {name: text for name, text in self._texts(part).items() if text}
        numbers = {name: f"{SIGNS[name]}{text}" for name, text in texts.items()}
        said = {name: _said(name, text) for name, text in texts.items()}
        title = list(said.values())
        if self.overlay in FIGURES:
            value = self._values[self.overlay].get(part.id)
            figure = FIGURES[self.overlay].said(value) if value is not None else ""
            numbers = {"value": figure} if figure else {}
            compared = f"{overlay_word(self.overlay)} {figure or '—'}"
            said = {"value": compared}
            title.insert(0, compared)
        never = self._never(part)
        if never:
            title.append(_("not visited"))
        level = self._level(part)
        classes = (
            f"{HEAT}{level}" if level else "",
            UNVISITED if never else "",
            "has-undeclared" if self._strays(part) else "",
            "is-chosen" if chosen and chosen in part.members else "",
        )
        return NodeState(
            tuple(filter(None, classes)),
            title=f"{part.label}: {', '.join(title)}" if title else part.label,
            numbers=numbers,
            said={name: f"{part.label}: {said[name]}" for name in numbers},
        )

    def _texts(self, part: Part) -> dict[str, str]:
        """The numbers of a part by what is done; "" for none."""
        texts = {}
        for doing in NOW:
            number = sum(self.standing.number(one, doing) for one in part.members)
            more = bool(self.standing.unsure.intersection(part.members))
            texts[doing] = f"{short(number)}{'+' if more else ''}" if number else ""
        number = len(self._passed[part.id].finished)
        texts["finished"] = self.window.said(number) if number else ""
        return texts

    @cached_property
    def _passed(self) -> dict[str, Passed]:
        """What each part was like in the window."""
        return {part.id: self.window.of(part.members) for part in self.sketch.steps()}

    @cached_property
    def _values(self) -> dict[str, dict[str, float]]:
        """The figures of each overlay by the parts that have one."""
        return {
            name: {
                part: value
                for part, passed in self._passed.items()
                if (value := figure.of(passed)) is not None
            }
            for name, figure in FIGURES.items()
        }

    @cached_property
    def _limits(self) -> list[float]:
        """What the levels of the overlay go up to; none where no part has a figure."""
        found = self._values[self.overlay].values()
        if not found:
            return []
        if not FIGURES[self.overlay].of_time:
            return list(RATES)
        return [max(found) * level / LEVELS for level in range(1, LEVELS + 1)]

    def _level(self, part: Part) -> int:
        """The level of a part; 0 for none."""
        if self.overlay not in FIGURES or part.id not in self._values[self.overlay]:
            return 0
        value = self._values[self.overlay][part.id]
        return min(sum(value > limit for limit in self._limits), LEVELS - 1) + 1

    @cached_property
    def _known(self) -> frozenset[str]:
        """The steps that processes are in now, or finished lately."""
        return frozenset([*self.standing.steps, *self.window.steps])

    def _never(self, part: Part) -> bool:
        """Whether no process was seen in any of its steps."""
        return all(
            self.seen.never(one) and one not in self._known for one in part.members
        )

    def _strays(self, part: Part) -> bool:
        """Whether a way that is not declared begins or ends in it."""
        ends = (end for way, _number in self.seen.ways for end in way)
        return any(end in part.members for end in ends)


def _said(doing: str, text: str) -> str:
    words = {
        "active": _("%(number)s at work"),
        "waiting": _("%(number)s waiting"),
        "failed": _("%(number)s failed"),
        "finished": _("%(number)s finished"),
    }
    return words[doing] % {"number": text}
