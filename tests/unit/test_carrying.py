"""What of a process can go over to another version: decided without tables."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.definition import (
    Workflow,
    fork,
    join,
    migrates_from,
    start,
    step,
    then,
)
from orchestrator.definition.declarations.migrating import MigratesFrom
from orchestrator.definition.graph import difference
from orchestrator.definition.process_manager.migration import (
    MigratedManager,
    migrate_place,
)
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.migration import (
    StoredVisit,
    history_mismatches,
    kind_mismatches,
    unmapped_visits,
    visit_kind,
)
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.replay import Replay, replay_history
from orchestrator.definition.workflow.steps import Step as Node
from orchestrator.exceptions import NotMigrated
from tests.apps.versions.claims import Claim, ClaimInCents, in_cents
from tests.apps.versions.letters import (
    Letter,
    LetterInParallel,
    LetterProofread,
    LetterTypeset,
)
from tests.services.cases import cases
from tests.unit import shop
from tests.unit.shop import Step
from tests.unit.workflows import define, refusal


def work() -> str:
    return "done"


A, B, C = (step(work, name) for name in "abc")


def in_a_row(steps: list[Node]) -> type[Workflow]:
    """A workflow of these steps, one after the other."""
    flow = (start(steps[0]), *([then(*steps)] if steps[1:] else []))
    return type("Chain", (Workflow,), {"flow": flow})


def named(length: int, prefix: str = "s") -> list[Node]:
    return [step(work, f"{prefix}{number}") for number in range(length)]


def chain(length: int, prefix: str = "s") -> Plan:
    """The plan of so many steps in a row."""
    return in_a_row(named(length, prefix)).plan()


def visits_of(replay: Replay, names: dict[str, str]) -> Iterator[StoredVisit]:
    """The visits that a history has left, as they are stored, under other names."""
    for revision, (name, number) in enumerate(replay.entered, start=1):
        is_open = replay.open.get(name) == number
        kind = visit_kind(replay.plan[name])
        left = None if is_open else revision
        yield StoredVisit(names.get(name, ""), name, number, kind, left)


def history(done: int, prefix: str = "s") -> list[Settled]:
    """That so many steps of a chain are done."""
    return [Settled(f"{prefix}{number}") for number in range(done)]


def same(plan: Plan) -> dict[str, str]:
    return {name: name for name in plan.vertices}


@given(st.integers(1, 8), st.data())
def test_a_history_fits_a_longer_version(length: int, data: st.DataObject) -> None:
    settled = history(data.draw(st.integers(0, length - 1)))
    old = replay_history(chain(length), settled)
    new = replay_history(chain(length + data.draw(st.integers(0, 3))), settled)

    assert list(history_mismatches(new, visits_of(old, same(old.plan)))) == []


@given(st.integers(2, 8), st.data())
def test_steps_may_have_other_names(length: int, data: st.DataObject) -> None:
    done = data.draw(st.integers(0, length - 1))
    old = replay_history(chain(length), history(done))
    new = replay_history(chain(length, "t"), history(done, "t"))
    names = {f"s{number}": f"t{number}" for number in range(length)}

    assert list(history_mismatches(new, visits_of(old, names))) == []


@given(st.integers(2, 8), st.data())
def test_a_step_before_another_never_runs(length: int, data: st.DataObject) -> None:
    done = data.draw(st.integers(1, length - 1))
    steps = named(length)
    steps.insert(data.draw(st.integers(1, done)), step(work, "new"))
    old = replay_history(chain(length), history(done))
    new = replay_history(in_a_row(steps).plan(), history(done))

    found = list(history_mismatches(new, visits_of(old, same(old.plan))))

    assert any("new would have begun" in reason for reason in found)


def test_an_open_step_that_is_none_of_the_other_version_is_told() -> None:
    visits = [StoredVisit("", "approval"), StoredVisit("", "draft", left=3)]

    assert list(unmapped_visits(visits, 2)) == [
        "approval is open, and version 2 has no step that it is mapped to"
    ]


def test_an_open_step_that_waits_for_something_else_is_told() -> None:
    waits = StoredVisit("draft", "approval", kind="wait")
    joins = StoredVisit("post", "both", kind="join")

    assert list(kind_mismatches([waits, joins], Letter.plan())) == [
        "approval is of another kind than draft there",
        "both waits for its branches, and post joins none",
    ]


def test_a_join_must_have_counted_what_it_would_have() -> None:
    replay = replay_history(LetterInParallel.plan(), [Settled("draft")])
    joins = StoredVisit("approval", "approval", kind="join")

    found = list(
        history_mismatches(replay, [StoredVisit("draft", "draft", left=2), joins])
    )

    assert "illustrate would have begun at the start, and never ran" in found
    assert "approval joins other branches there" in found


@cases("plan, fits", (LetterTypeset, True), (LetterProofread, False))
def test_the_letters(plan: type[Workflow], fits: bool) -> None:
    names = {"draft": "written" if plan is LetterTypeset else "draft"}
    names["approval"] = "approval"
    old = replay_history(Letter.plan(), [Settled("draft")])
    new = replay_history(plan.plan(), [Settled(names["draft"])])

    assert (not list(history_mismatches(new, visits_of(old, names)))) == fits


def over(row: MigratesFrom, body: dict[str, Any], **steps: str) -> MigratedManager:
    """Where a claim with an assessor goes by a row of the version in cents."""
    names = list(map(str, ClaimInCents.Step))
    mapping = row.mapping(["WithAssessor"], names, steps)
    return migrate_place(ClaimInCents, "WithAssessor", mapping, body, row)


CLAIM = {"claim": "C", "amount": 2}


def test_a_process_manager_stands_in_the_step_that_is_mapped() -> None:
    place = over(ClaimInCents.migration_from(1), CLAIM)

    assert place.step == ClaimInCents.Step.BEING_ASSESSED
    assert place.body == {"claim": "C", "cents": 200, "currency": "EUR"}


@cases("target", "", "Closed", "Filed", "Nowhere")
def test_no_process_begins_or_ends_by_a_migration(target: str) -> None:
    with pytest.raises(NotMigrated):
        over(MigratesFrom(1, data=in_cents), CLAIM, WithAssessor=target)


def test_data_is_read_as_the_other_version_declares_it() -> None:
    with pytest.raises(NotMigrated, match="its data is not of the form"):
        over(MigratesFrom(1), {"claim": 1}, WithAssessor="SeenTwice")


@cases(
    "rows, reason",
    ("migrates_from(1)", "migrations holds rows"),
    ((1,), "migrations holds what migrates_from"),
    ((migrates_from(2),), "that is its own version"),
    ((migrates_from(0),), "a whole number from 1"),
    ((migrates_from(1), migrates_from(1)), "is said twice"),
    ((migrates_from(1, steps={"Old": "Pakcing"}),), "did you mean 'Packing'"),
    ((migrates_from(1, steps={"Old": Step.DONE}),), "no process can be in 'Done'"),
    ((migrates_from(1, data=lambda data: data),), "a named function"),
)
def test_a_migration_that_makes_no_sense_is_refused(rows: object, reason: str) -> None:
    assert reason in str(shop.refusal(version=2, migrations=rows))


def test_a_workflow_maps_its_steps_one_to_one() -> None:
    rows = (migrates_from(1, steps={"a": A, "b": A}),)
    refused = refusal(start(A), then(A, B), version=2, migrations=rows)

    assert "two steps would become a" in refused.reason


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


WAYS_OUT = ("ways out",)


@cases(
    "one, other, changed",
    # what a join waits for is a way in
    (
        (start(A, B), join(A, B, into=C)),
        (start(A, B), join(A, B, into=C, wait_for="any")),
        {"c": ("ways in",)},
    ),
    # a fork is a way out
    (
        (start(A), then(A, B), then(B, C)),
        (start(A), fork(A, into=[B, C])),
        {"a": WAYS_OUT, "b": WAYS_OUT, "c": ("ways in",)},
    ),
)
def test_another_join_or_fork_differs(one: Any, other: Any, changed: Any) -> None:
    before, after = (define(*rows).graph() for rows in (one, other))

    assert difference(before, after).changed == changed
