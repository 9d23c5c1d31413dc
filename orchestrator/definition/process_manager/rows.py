"""The rows of process managers. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum

from orchestrator.definition.declarations.guards import in_stable_order, read_guards
from orchestrator.definition.declarations.transition_rows import (
    DataPredicate,
    Disposer,
    TransitionRow,
)
from orchestrator.definition.messages import Event


class AnyStep(Enum):
    """Stands for every step except the first and the final ones."""

    ANY = "any step"


ANY = AnyStep.ANY


@dataclass(frozen=True)
class During:
    """The rows of some steps, and the disposition of an event that none of the rows takes."""

    steps: tuple[StrEnum, ...] | AnyStep
    rows: tuple[TransitionRow, ...]
    otherwise: Disposer | None = None


def during(
    steps: StrEnum | Iterable[StrEnum] | AnyStep,
    *rows: TransitionRow,
    otherwise: Disposer | None = None,
) -> During:
    """Declare the rows of a step, of several steps, or of ANY step in which a process waits.

    The engine tries the rows for an event in the order written; those of ANY come after the step's own.

    Args:
        steps: one step, several, or ANY.
        rows: the transitions of each of these steps.
        otherwise: `park`, `ignore` or `reject`: the disposition of an event that no row of these steps takes. None for
            the default of the class.
    """
    if isinstance(steps, AnyStep):
        return During(steps, rows, otherwise)
    one = isinstance(steps, str) or not isinstance(steps, Iterable)
    listed = (steps,) if one else tuple(in_stable_order(steps))
    return During(listed, rows, otherwise)


def when(
    event: type[Event], /, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """Declare a transition for an event. A guard names a field and its accepted values, or `stored("field")`."""
    return TransitionRow(event, predicates=predicates, guards=read_guards(guards))


def after(
    delay: timedelta, /, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """Declare a transition for a deadline, counted from entering the step."""
    return TransitionRow(delay, predicates=predicates, guards=read_guards(guards))
