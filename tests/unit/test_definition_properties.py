"""In any small definition each event in each step has exactly one outcome, and the graph shows it."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from orchestrator.definition import Event, ProcessManager, during, ignore, reject, when
from orchestrator.definition.codec import encode
from orchestrator.definition.dataflow import reachable
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.process_manager.rows import During
from orchestrator.exceptions import InvalidDefinition


class Light(StrEnum):
    RED = "red"
    AMBER = "amber"
    GREEN = "green"


class Step(StrEnum):
    START = "Start"
    LEFT = "Left"
    RIGHT = "Right"
    END = "End"


@dataclass(frozen=True)
class Data:
    light: Light = Light.RED
    loud: bool = False


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


class Begun(Event):
    side: Side
    light: Light
    loud: bool


class Ended(Event):
    pass


class Plain(Event):
    pass


class Loud(Event):
    loud: bool


class Switched(Event):
    light: Light


EVENTS: list[type[Event]] = [Plain, Loud, Switched]
HAPPENED: list[Event] = [
    *(Begun(*case) for case in product(Side, Light, (True, False))),
    Ended(),
    Plain(),
    *(Loud(loud) for loud in (True, False)),
    *(Switched(light) for light in Light),
]
DOMAINS: dict[str, list[Any]] = {"light": list(Light), "loud": [True, False]}
targets = st.sampled_from([Step.LEFT, Step.RIGHT, Step.END])


@st.composite
def moves(draw: st.DrawFn, event: type[Event], guards: dict[str, Any]) -> TransitionRow:
    row = when(event, **guards).go_to(draw(targets))
    if draw(st.booleans()):
        row = row.set(light=draw(st.sampled_from(Light)))
    return row


@st.composite
def cells(draw: st.DrawFn, event: type[Event]) -> list[TransitionRow]:
    """The rows of one step for one event: none, or such that each value of a field is taken once."""
    last = draw(st.sampled_from(["nothing", "move", "ignore", "reject"]))
    rows: list[TransitionRow] = []
    name = draw(st.sampled_from([*DOMAINS, ""]))
    if name:
        values = draw(st.permutations(DOMAINS[name]))
        cut = draw(st.integers(1, len(values) - 1))
        rows.append(draw(moves(event, {name: values[:cut]})))
        if last == "nothing" or draw(st.booleans()):
            rows.append(draw(moves(event, {name: values[cut:]})))
    if last == "move":
        rows.append(draw(moves(event, {})))
    elif last != "nothing":
        rows.append(ignore(event) if last == "ignore" else reject(event))
    return rows


@st.composite
def definitions(draw: st.DrawFn) -> type[ProcessManager]:
    """Any definition of two steps whose rows cover what they are for."""
    start = during(
        Step.START,
        when(Begun, side=Side.LEFT).go_to(Step.LEFT),
        when(Begun, side=Side.RIGHT).go_to(Step.RIGHT),
    )
    groups = [
        during(
            step,
            *(row for event in EVENTS for row in draw(cells(event))),
            when(Ended).go_to(Step.END),
        )
        for step in (Step.LEFT, Step.RIGHT)
    ]
    return crossing(start, *groups)


def crossing(*groups: During) -> type[ProcessManager]:
    body = {"__module__": __name__, "Step": Step, "Data": Data, "transitions": groups}
    return type("Crossing", (ProcessManager,), body)


def reached(cls: type[ProcessManager]) -> set[tuple[Step, Any]]:
    """Every step, with every data that walks of all lengths can bring to it."""
    found: set[tuple[Step, Any]] = {(Step.START, None)}
    waiting = list(found)
    while waiting:
        at, data = waiting.pop()
        for event in HAPPENED:
            decision = cls.decide(at, data, event)
            place = (Step(decision.step), decision.data)
            if decision.outcome == "moved" and place not in found:
                found.add(place)
                waiting.append(place)
    return found


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(definitions())
def test_each_event_in_each_step_has_one_outcome(cls: type[ProcessManager]) -> None:
    for (step, data), event in product(reached(cls), HAPPENED):
        rows = cls.rows_for(step, type(event))
        decision = cls.decide(step, data, event)
        if not rows:
            assert decision.outcome == "parked"
            continue
        assert decision.outcome != "parked", "a gap"
        takers = [row for row in rows if row.guards and holds(row, data, event)]
        assert len(takers) <= 1, "an overlap"
        if takers:
            assert decision.edge == takers[0].edge


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(definitions())
def test_what_happens_was_drawn_as_possible(cls: type[ProcessManager]) -> None:
    for step, data in reached(cls):
        known = {} if data is None else encode(data)
        nodes, edges = reachable(cls.graph(), step, known)
        for event in HAPPENED:
            decision = cls.decide(step, data, event)
            if decision.outcome == "moved":
                assert decision.edge in edges
                assert decision.step in nodes


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(definitions(), st.data())
def test_a_gap_is_refused(cls: type[ProcessManager], data: st.DataObject) -> None:
    split = [
        (step, row)
        for step, rows in cls.rows.items()
        for row in rows
        if row.guards
        and step != Step.START
        and len(cls.rows_for(step, row.trigger)) == 2  # type: ignore[arg-type]
        and cls.rows_for(step, row.trigger)[1].guards  # type: ignore[arg-type]
    ]
    assume(split)
    step, dropped = data.draw(st.sampled_from(split))
    groups = [
        during(at, *(row for row in rows if (at, row) != (step, dropped)))
        for at, rows in cls.rows.items()
    ]

    with pytest.raises(InvalidDefinition, match="a gap in"):
        crossing(*groups)


def holds(row: TransitionRow, data: Any, event: Event) -> bool:
    return all(
        guard.holds(getattr(event, guard.field, getattr(data, guard.field, None)), data)
        for guard in row.guards
    )
