"""Calling the conditions of a workflow's rows. An error that one raises has its name noted."""

from __future__ import annotations

from typing import Any

from orchestrator.definition.codec import copied
from orchestrator.definition.labels import name_of
from orchestrator.definition.workflow.rows import ResultPredicate
from orchestrator.exceptions import ExitRefused

CONDITION = "_procession_condition"


def name_condition(error: BaseException, name: str) -> None:
    """Note with an error the condition, or the row with its fields, out of which it came."""
    vars(error)[CONDITION] = name


def condition_of(error: BaseException) -> str:
    """Return the condition that raised an error; "" for an error that came out of no condition.

    An `ExitRefused` comes out of the condition that raised what ends programs.
    """
    if isinstance(error, ExitRefused) and CONDITION not in vars(error):
        return str(vars(error.__cause__ or error).get(CONDITION, ""))
    return str(vars(error).get(CONDITION, ""))


def holds(predicate: ResultPredicate, result: Any, form: Any) -> bool:
    """Whether a predicate holds for a result, of which it gets a copy.

    Args:
        predicate: the predicate.
        result: the result.
        form: the type of the result.

    Raises:
        Exception: any error of the predicate, with its name noted.
    """
    try:
        return bool(predicate(copied(form, result)))
    except BaseException as error:
        name_condition(error, name_of(predicate))
        raise
