"""The figures of a definition's map: numbers now, or one figure by which steps are compared.

An overlay colours steps by five levels: times relative to the longest on the map, failure rates by fixed limits. Each
step also shows its figure as text, for readers who see no colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.base.moments import exact
from monitoring.definition.seen_visits import SeenVisits
from monitoring.definition.step_counts import StepCounts
from monitoring.diagrams import DiagramState, NodeState
from monitoring.diagrams.painting import HEAT, UNVISITED
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.queries.activity import NOW
from monitoring.queries.counts import short_number
from monitoring.queries.recent_rows import Estimate
from monitoring.queries.window import StepFigures, Window

LEVELS = 5

RATES = (0.0, 0.01, 0.05, 0.2, 1.0)
"""The upper limits of the levels of failure rates."""

SIGNS = {"active": "▸", "waiting": "…", "failed": "!", "finished": "✓"}
"""The sign before a number, beside its place and colour."""


@dataclass(frozen=True)
class Figure:
    """A figure by which an overlay compares steps; `of` returns None for a step without it in the window."""

    of: Callable[[StepFigures], float | None]
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

OVERLAYS = {
    "now": gettext_lazy("Now"),
    "median": gettext_lazy("Median time in step"),
    "p95": gettext_lazy("95th percentile of the time in step"),
    "failures": gettext_lazy("Failure rate"),
}
"""The labels of the overlays; the first one is the numbers now."""


@dataclass(frozen=True)
class StepNumbers:
    """The numbers of a drawn part, which is one step or several, as texts; "" for none.

    Args:
        part: the part; a group of steps has no list of processes.
        texts: the numbers by activity.
        figures: the figures by overlay.
        never: whether no process has visited the part.
    """

    part: Part
    texts: Mapping[str, str]
    figures: Mapping[str, str]
    never: bool


@dataclass(frozen=True)
class MapFigures:
    """All figures of the map, for one overlay."""

    overlay: str
    standing: StepCounts
    window: Window
    seen: SeenVisits
    sketch: Sketch

    def state(self, chosen: str = "") -> DiagramState:
        """Return the state of the picture; `chosen` is the step of the list."""
        return DiagramState(
            {part.id: self._node(part, chosen) for part in self.sketch.steps()}
        )

    def scale(self) -> list[str]:
        """Return the upper limit of each level; empty without figures."""
        if self.overlay not in FIGURES:
            return []
        said = FIGURES[self.overlay].said
        return [f"≤ {said(one)}" for one in self._limits]

    def rows(self) -> Iterator[StepNumbers]:
        """Yield each part with all its numbers, for a table."""
        for part in self.sketch.steps():
            figures = {
                name: FIGURES[name].said(found[part.id])
                for name, found in self._values.items()
                if part.id in found
            }
            texts = self._texts(part)
            if texts["finished"]:
                texts["finished"] = self._finished(part).told
            yield StepNumbers(part, texts, figures, self._never(part))

    def _node(self, part: Part, chosen: str) -> NodeState:
        texts = {name: text for name, text in self._texts(part).items() if text}
        numbers = {name: f"{SIGNS[name]}{text}" for name, text in texts.items()}
        long = {**texts, "finished": self._finished(part).told}
        said = {name: _activity_text(name, long[name]) for name in texts}
        title = list(said.values())
        if self.overlay in FIGURES:
            value = self._values[self.overlay].get(part.id)
            figure = FIGURES[self.overlay].said(value) if value is not None else ""
            numbers = {"value": figure} if figure else {}
            compared = f"{OVERLAYS[self.overlay]} {figure or '—'}"
            said = {"value": compared}
            title.insert(0, compared)
        if self._never(part):
            title.append(_("not visited"))
        return NodeState(
            tuple(self._classes(part, chosen)),
            title=f"{part.label}: {', '.join(title)}" if title else part.label,
            numbers=numbers,
            said={name: f"{part.label}: {said[name]}" for name in numbers},
        )

    def _classes(self, part: Part, chosen: str) -> Iterator[str]:
        if level := self._level(part):
            yield f"{HEAT}{level}"
        if self._never(part):
            yield UNVISITED
        if self._has_undeclared_way(part):
            yield "has-undeclared"
        if chosen and chosen in part.members:
            yield "is-chosen"

    def _texts(self, part: Part) -> dict[str, str]:
        """Return the numbers of a part by activity; "" for none."""
        texts = {}
        for doing in NOW:
            number = sum(self.standing.number(one, doing) for one in part.members)
            more = bool(self.standing.unsure.intersection(part.members))
            said = f"{short_number(number)}{'+' if more else ''}"
            texts[doing] = said if number else ""
        finished = self._finished(part)
        # A sample without a visit of a step does not show that there was none.
        some = finished or not (self.window.read.whole or self._never(part))
        texts["finished"] = str(finished) if some else ""
        return texts

    def _finished(self, part: Part) -> Estimate:
        return self.window.finished(self._passed[part.id])

    @cached_property
    def _passed(self) -> dict[str, StepFigures]:
        """The figures of each part in the window."""
        return {part.id: self.window.of(part.members) for part in self.sketch.steps()}

    @cached_property
    def _values(self) -> dict[str, dict[str, float]]:
        """The figures of each overlay by part, without parts that have none."""
        return {
            name: {
                part: value
                for part, passed in self._passed.items()
                if self.window.shows(passed, failures=not figure.of_time)
                and (value := figure.of(passed)) is not None
            }
            for name, figure in FIGURES.items()
        }

    @cached_property
    def _limits(self) -> list[float]:
        """The upper limits of the overlay's levels; empty without figures."""
        found = self._values[self.overlay].values()
        if not found:
            return []
        if not FIGURES[self.overlay].of_time:
            return list(RATES)
        return [max(found) * level / LEVELS for level in range(1, LEVELS + 1)]

    def _level(self, part: Part) -> int:
        """Return the level of a part; 0 for none."""
        if self.overlay not in FIGURES or part.id not in self._values[self.overlay]:
            return 0
        value = self._values[self.overlay][part.id]
        return min(sum(value > limit for limit in self._limits), LEVELS - 1) + 1

    @cached_property
    def _known(self) -> frozenset[str]:
        """The steps with processes now, or with visits in the window."""
        return frozenset([*self.standing.steps, *self.window.steps])

    def _never(self, part: Part) -> bool:
        """Whether no process has visited any of its steps."""
        return all(
            self.seen.never(one) and one not in self._known for one in part.members
        )

    def _has_undeclared_way(self, part: Part) -> bool:
        """Whether an undeclared way begins or ends in it."""
        ends = (end for way, _number in self.seen.ways for end in way)
        return any(end in part.members for end in ends)


def _activity_text(doing: str, text: str) -> str:
    words = {
        "active": _("%(number)s at work"),
        "waiting": _("%(number)s waiting"),
        "failed": _("%(number)s failed"),
        "finished": _("%(number)s finished"),
    }
    return words[doing] % {"number": text}
