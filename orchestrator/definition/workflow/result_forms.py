"""The forms in which inputs and results are stored: strict, and such that JSON can hold them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_args

from pydantic import PydanticUserError, TypeAdapter

from orchestrator.definition.domains import hints
from orchestrator.definition.messages import STRICT
from orchestrator.definition.workflow.agreement import plain


def make_strict(annotation: Any) -> None:
    """Gives the dataclasses in an annotation, those in their fields too, the strict form that messages have."""
    waiting, seen = [annotation], set[int]()
    while waiting:
        hint = plain(waiting.pop())
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        waiting += get_args(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            if not hasattr(hint, "__pydantic_config__"):
                hint.__pydantic_config__ = STRICT  # type: ignore[attr-defined]  # what pydantic looks for
            waiting += _hints(hint)


def _hints(form: type[Any]) -> list[Any]:
    try:
        return list(hints(form).values())
    except NameError:
        return []  # refused when its form is built


def without_json_form(annotation: Any) -> str:
    """Why values of this annotation cannot be written as JSON; "" when they can."""
    try:
        TypeAdapter(annotation).json_schema(mode="serialization")
    except (PydanticUserError, NameError, TypeError) as error:
        return str(error).splitlines()[0]
    return ""
