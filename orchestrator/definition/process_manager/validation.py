"""Rules for a process manager as a whole. Its class statement applies them.

Rules for single rows are in `row_rules`. The graph checks follow python-statemachine: one start, no unreachable step,
no dead end. The coverage check uses the values that the data can have in a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any

from orchestrator.definition.annotations import is_class
from orchestrator.definition.codec import adapter
from orchestrator.definition.declarations.migrating import migration_mistakes
from orchestrator.definition.declarations.outside_ids import identity_mistakes
from orchestrator.definition.declarations.transition_rows import (
    DEFAULTS,
    TransitionRow,
    park,
)
from orchestrator.definition.labels import name_of
from orchestrator.definition.process_manager.reachability import reachability_mistakes
from orchestrator.definition.process_manager.row_rules import (
    ROW_RULES,
    Machine,
    Reasons,
    why_no_member,
)
from orchestrator.definition.process_manager.rows import AnyStep, During
from orchestrator.definition.process_manager.state_machine import (
    copied_fields,
    dataclass_fields,
    is_required,
)
from orchestrator.definition.refusals import attribute_mistakes, class_mistakes
from orchestrator.exceptions import InvalidMessage


def shape_mistakes(cls: Machine) -> Reasons:
    """Yield the mistakes in the steps, the data and the groups of rows."""
    step, data = getattr(cls, "Step", None), getattr(cls, "Data", None)
    if not is_class(step, StrEnum) or len(step) < 2:  # type: ignore[arg-type]  # a class
        yield "declare `class Step(StrEnum)` with at least a first and a final step"
    if not is_dataclass(data):
        yield "declare `Data` as a dataclass"
    groups: Any = cls.transitions
    yield from _of_transitions(groups)
    yield from _of_groups(groups, step)
    yield from _of_defaults(cls, groups)


def _of_transitions(groups: Any) -> Reasons:
    if isinstance(groups, During | TransitionRow):
        yield "transitions must be several during(...) groups: put a comma behind one that is alone"
    for group in groups:
        if isinstance(group, TransitionRow):
            yield f"the row {str(group)!r} stands in no step: write it as during(step, ...)"
        if not isinstance(group, During):
            yield f"transitions must be during(...) groups, not {group!r}"
        for row in group.rows:
            if not isinstance(row, TransitionRow):
                yield f"{_named(group)} holds {row!r}, which is not a row"


def _named(group: During) -> str:
    """The text of a group's steps."""
    if isinstance(group.steps, AnyStep):
        return group.steps.name
    return ", ".join(map(str, group.steps))


def _of_groups(groups: Sequence[During], steps: Any) -> Reasons:
    for group in groups:
        if isinstance(group.steps, AnyStep):
            continue
        if not group.steps:
            yield "during([]) names no step"
        for step in group.steps:
            if not isinstance(step, steps):
                yield why_no_member(step, steps)
        if len(set(group.steps)) < len(group.steps):
            yield f"during({_named(group)}) names a step twice"


def _of_defaults(cls: Machine, groups: Sequence[During]) -> Reasons:
    """Allow one `otherwise` for each step in which a process waits."""
    for otherwise in [cls.otherwise, *(group.otherwise or park for group in groups)]:
        if otherwise not in tuple(DEFAULTS):  # it may not be hashable
            yield f"otherwise={name_of(otherwise)}: it must be park, ignore or reject"
    seen: set[StrEnum] = set()
    for group in groups:
        if group.otherwise is None:
            continue
        if isinstance(group.steps, AnyStep):
            yield f"ANY: what holds for all steps is said by the class: otherwise = {name_of(group.otherwise)}"
            continue
        for step in group.steps:
            if step in seen:
                yield f"{step} says twice what becomes of an event that no row takes"
            seen.add(step)


def broken_rows(cls: Machine) -> Iterator[tuple[TransitionRow | None, str]]:
    """Yield the rows that break a rule with the reasons; None instead of a row for the whole class."""
    yield from class_mistakes(attribute_mistakes(cls))
    yield from class_mistakes(_of_steps(cls))
    for step in cls.finals & cls.rows.keys():
        row = next(iter(cls.rows[step]), None)
        yield row, f"{step} is final: nothing can happen in it"
    for step, rows in cls.rows.items():
        for row in rows:
            for rule in ROW_RULES:
                for reason in rule(cls, step, row):
                    yield row, reason
    yield from class_mistakes(_of_forms(cls))
    yield from _of_names(cls)
    yield from _of_start(cls)
    yield from class_mistakes(reachability_mistakes(cls))


def _of_steps(cls: Machine) -> Reasons:
    for step in cls.finals:
        if not isinstance(step, cls.Step):
            yield why_no_member(step, cls.Step)
    waiting = cls.waiting_steps()
    for group in cls.transitions:
        if isinstance(group.steps, AnyStep):
            if not waiting:
                yield "ANY stands for no step: between the first and the final ones there is none"
        elif group.otherwise and not set(group.steps) <= set(waiting):
            yield f"{_named(group)}: nothing waits there, so there is no otherwise"


def _of_forms(cls: Machine) -> Reasons:
    for form in [cls.Data, *cls.events.values(), *cls.issued_commands().values()]:
        try:
            adapter(form)
        except InvalidMessage as error:
            yield str(error)


def _of_names(cls: Machine) -> Iterator[tuple[TransitionRow, str]]:
    """Require different names: messages are stored by the names of their classes."""
    known: dict[str, type[Any]] = {}
    for row in cls.all_rows():
        issued = [issue.command for issue in row.issues]
        for form in [row.event, *issued] if row.event else issued:
            if known.setdefault(form.__name__, form) is not form:
                yield row, f"two message classes have the name {form.__name__}"


def _of_start(cls: Machine) -> Iterator[tuple[TransitionRow | None, str]]:
    starting = [row for row in cls.rows.get(cls.first, ()) if row.disposition == "move"]
    if not starting:
        yield None, f"no event starts it: {cls.first} has no rows"
    yield from class_mistakes(_of_class(cls))
    for row in starting:
        given = {*copied_fields(cls.Data, row), *dict(row.sets)}
        for name, field in dataclass_fields(cls.Data).items():
            if is_required(field) and name not in given:
                yield row, f"starts a process but leaves the data's {name!r} empty"


def _of_class(cls: Machine) -> Iterator[str]:
    """Yield the mistakes in keys, outside ids and migrations."""
    yield from identity_mistakes(cls, cls.Data, "data", cls.secrets().names)
    declared = vars(cls).get("migrations", ())
    waiting = [str(step) for step in cls.waiting_steps()]
    yield from migration_mistakes(declared, cls.version, waiting, one_to_one=False)
