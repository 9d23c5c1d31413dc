"""What of a process can go over to another version: decided without tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.definition import (
    Event,
    ProcessManager,
    Workflow,
    during,
    fork,
    join,
    migrates_from,
    start,
    step,
    then,
    when,
)
from orchestrator.definition.difference import difference
from orchestrator.definition.migrating import MigratesFrom
from orchestrator.definition.process_manager.carrying import carried
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.carrying import (
    KnownVisit,
    kind_of,
    misfits,
    unfitting,
    unmapped,
)
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.replay import Replay, replayed
from orchestrator.definition.workflow.steps import Step as Node
from orchestrator.exceptions import InvalidDefinition, NotCarried
from tests.apps.versions.claims import Claim, ClaimInCents, in_cents
from tests.apps.versions.letters import (
    Letter,
    LetterInParallel,
    LetterProofread,
    LetterTypeset,
)


def work() -> str:
    return "done"


def in_a_row(steps: list[Node]) -> type[Workflow]:
    """A workflow of these steps, one after the other."""
    flow = (start(steps[0]), *([then(*steps)] if steps[1:] else []))
    return type("Chain", (Workflow,), {"flow": flow})


def named(length: int, prefix: str = "s") -> list[Node]:
    return [step(work, f"{prefix}{number}") for number in range(length)]


def chain(length: int, prefix: str = "s") -> Plan:
    """The plan of so many steps in a row."""
    return in_a_row(named(length, prefix)).plan()


def visits_of(replay: Replay, names: dict[str, str]) -> Iterator[KnownVisit]:
    """The visits that a history has left, as they are stored, under other names."""
    for revision, (name, number) in enumerate(replay.entered, start=1):
        is_open = replay.open.get(name) == number
        kind = kind_of(replay.plan[name])
        left = None if is_open else revision
        yield KnownVisit(names.get(name, ""), name, number, kind, left)


@given(st.integers(1, 8), st.data())
def test_a_history_fits_its_own_version_and_any_that_only_adds_behind_it(
    length: int, data: st.DataObject
) -> None:
    done = data.draw(st.integers(0, length - 1))
    settled = [Settled(f"s{number}") for number in range(done)]
    old = replayed(chain(length), settled)
    longer = chain(length + data.draw(st.integers(0, 3)))
    same = {name: name for name in old.plan.vertices}

    found = list(misfits(replayed(longer, settled), visits_of(old, same)))

    assert found == []


@given(st.integers(2, 8), st.data())
def test_steps_may_have_other_names(length: int, data: st.DataObject) -> None:
    done = data.draw(st.integers(0, length - 1))
    old = replayed(chain(length), [Settled(f"s{number}") for number in range(done)])
    new = replayed(
        chain(length, "t"), [Settled(f"t{number}") for number in range(done)]
    )
    names = {f"s{number}": f"t{number}" for number in range(length)}

    assert list(misfits(new, visits_of(old, names))) == []


@given(st.integers(2, 8), st.data())
def test_a_step_before_what_has_begun_would_never_run(
    length: int, data: st.DataObject
) -> None:
    done = data.draw(st.integers(1, length - 1))
    place = data.draw(st.integers(1, done))
    steps = named(length)
    steps.insert(place, step(work, "new"))
    plan = in_a_row(steps).plan()
    settled = [Settled(f"s{number}") for number in range(done)]
    old = replayed(chain(length), settled)
    same = {name: name for name in old.plan.vertices}

    found = list(misfits(replayed(plan, settled), visits_of(old, same)))

    assert any("new would have begun" in reason for reason in found)


def test_an_open_step_that_is_none_of_the_other_version_is_told() -> None:
    visits = [KnownVisit("", "approval"), KnownVisit("", "draft", left=3)]

    assert list(unmapped(visits, 2)) == [
        "approval is open, and version 2 has no step that it is mapped to"
    ]


def test_an_open_step_that_waits_for_something_else_is_told() -> None:
    visits = [
        KnownVisit("draft", "approval", kind="wait"),
        KnownVisit("post", "both", kind="join"),
    ]

    assert list(unfitting(visits, Letter.plan())) == [
        "approval is of another kind than draft there",
        "both waits for its branches, and post joins none",
    ]


def test_a_join_must_have_counted_what_it_would_have() -> None:
    replay = replayed(LetterInParallel.plan(), [Settled("draft")])
    visits = [
        KnownVisit("draft", "draft", left=2),
        KnownVisit("approval", "approval", kind="join"),
    ]

    found = list(misfits(replay, visits))

    assert "illustrate would have begun at the start, and never ran" in found
    assert "approval joins other branches there" in found


@pytest.mark.parametrize(
    ("plan", "fits"), [(LetterTypeset, True), (LetterProofread, False)]
)
def test_the_letters(plan: type[Workflow], fits: bool) -> None:
    names = {"draft": "written" if plan is LetterTypeset else "draft"}
    names["approval"] = "approval"
    old = replayed(Letter.plan(), [Settled("draft")])
    new = replayed(plan.plan(), [Settled(names["draft"])])

    assert (not list(misfits(new, visits_of(old, names)))) == fits


def test_a_process_manager_stands_in_the_step_that_is_mapped() -> None:
    row = ClaimInCents.migration_from(1)
    mapping = row.mapping(["WithAssessor"], map(str, ClaimInCents.Step))

    place = carried(
        ClaimInCents, "WithAssessor", mapping, {"claim": "C", "amount": 2}, row
    )

    assert place.step == ClaimInCents.Step.BEING_ASSESSED
    assert place.body == {"claim": "C", "cents": 200, "currency": "EUR"}


@pytest.mark.parametrize("target", ["", "Closed", "Filed", "Nowhere"])
def test_no_process_begins_or_ends_by_a_migration(target: str) -> None:
    row = MigratesFrom(1, data=in_cents)
    steps = list(map(str, ClaimInCents.Step))
    mapping = row.mapping(["WithAssessor"], steps, {"WithAssessor": target})

    with pytest.raises(NotCarried):
        carried(ClaimInCents, "WithAssessor", mapping, {"claim": "C", "amount": 2}, row)


def test_data_is_read_as_the_other_version_declares_it() -> None:
    row = MigratesFrom(1)
    with pytest.raises(NotCarried, match="its data is not of the form"):
        carried(
            ClaimInCents,
            "WithAssessor",
            {"WithAssessor": "SeenTwice"},
            {"claim": 1},
            row,
        )


class Asked(Event):
    name: str


class Step(StrEnum):
    FIRST = "First"
    MIDDLE = "Middle"
    LAST = "Last"


@dataclass(frozen=True)
class Data:
    name: str


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("migrates_from(1)", "migrations holds rows"),
        ((1,), "migrations holds what migrates_from"),
        ((migrates_from(2),), "that is its own version"),
        ((migrates_from(0),), "a whole number from 1"),
        ((migrates_from(1), migrates_from(1)), "is said twice"),
        ((migrates_from(1, steps={"Old": "Middel"}),), "did you mean 'Middle'"),
        ((migrates_from(1, steps={"Old": Step.LAST}),), "no process can be in 'Last'"),
        ((migrates_from(1, data=lambda data: data),), "a named function"),
    ],
)
def test_what_makes_no_sense_is_refused_when_the_class_is_made(
    rows: object, reason: str
) -> None:
    body = {
        "version": 2,
        "Step": Step,
        "Data": Data,
        "migrations": rows,
        "transitions": (
            during(Step.FIRST, when(Asked).go_to(Step.MIDDLE)),
            during(Step.MIDDLE, when(Asked).go_to(Step.LAST)),
        ),
    }
    with pytest.raises(InvalidDefinition, match=reason):
        type("Second", (ProcessManager,), body)


def test_a_workflow_maps_its_steps_one_to_one() -> None:
    one, two = step(work, "one"), step(work, "two")
    body = {
        "version": 2,
        "flow": (start(one), then(one, two)),
        "migrations": (migrates_from(1, steps={"a": one, "b": one}),),
    }
    with pytest.raises(InvalidDefinition, match="two steps would become one"):
        type("Second", (Workflow,), body)


def test_migrations_are_those_of_the_class_itself() -> None:
    class Third(ClaimInCents):
        version = 3
        transitions = ClaimInCents.transitions

    assert Third.migration_from(1).steps == {}


# Two graphs


def test_what_two_versions_differ_in() -> None:
    found = difference(Claim.graph(), ClaimInCents.graph())

    assert found.removed == ("WithAssessor",)
    assert found.added == ("BeingAssessed", "SeenTwice")
    assert found.changed == {"Filed": ("ways out",)}


def test_with_a_mapping_a_renamed_step_is_the_same_step() -> None:
    mapping = {"WithAssessor": "BeingAssessed", "Filed": "Filed", "Closed": "Closed"}
    mapping["AtTheBank"] = "AtTheBank"

    found = difference(Claim.graph(), ClaimInCents.graph(), mapping)

    assert found.removed == ()
    assert found.added == ("SeenTwice",)
    assert found.changed == {"WithAssessor": ("name", "ways out")}


@given(st.integers(1, 6))
def test_a_graph_does_not_differ_from_itself(length: int) -> None:
    cls = in_a_row(named(length))
    assert not difference(cls.graph(), cls.graph())


def test_what_a_join_waits_for_is_a_way_in() -> None:
    a, b, c = (step(work, name) for name in "abc")
    one: type[Workflow] = type(
        "One", (Workflow,), {"flow": (start(a, b), join(a, b, into=c))}
    )
    any_of = (start(a, b), join(a, b, into=c, wait_for="any"))
    two: type[Workflow] = type("Two", (Workflow,), {"flow": any_of})

    assert difference(one.graph(), two.graph()).changed == {"c": ("ways in",)}


def test_a_fork_is_a_way_out() -> None:
    a, b, c = (step(work, name) for name in "abc")
    in_turn = (start(a), then(a, b), then(b, c))
    one: type[Workflow] = type("One", (Workflow,), {"flow": in_turn})
    forked = (start(a), fork(a, into=[b, c]))
    two: type[Workflow] = type("Two", (Workflow,), {"flow": forked})

    found = difference(one.graph(), two.graph())

    assert found.changed == {
        "a": ("ways out",),
        "b": ("ways out",),
        "c": ("ways in",),
    }
