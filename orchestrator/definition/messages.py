"""Events (facts, past tense) and commands (requests, imperative). The class statement makes them frozen dataclasses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, ClassVar, dataclass_transform

from pydantic import ConfigDict

from orchestrator.definition.secrets import secret
from orchestrator.exceptions import InvalidDefinition

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

FromOlder = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts the JSON values of an older form of a message to those of today's form."""

renamed: dict[str, str] = {}
"""The names of message classes by their former names."""

claimed: dict[str, set[str]] = {}
"""All classes that have a name as an alias."""


@dataclass_transform(frozen_default=True, field_specifiers=(field, secret))
class Message:
    """A message between processes and handlers. The name of its class is its type.

    Keywords of the class statement say how stored messages of other releases are read:

    Args:
        aliases: former names of the class: one, or several in a tuple.
        from_older: converts the JSON values of a message that does not have today's form.

    Raises:
        InvalidDefinition: an alias is no name of a class, or `from_older` is no plain function.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    _from_older: ClassVar[FromOlder | None] = None

    def __init_subclass__(
        cls, *, aliases: str | tuple[str, ...] = (), from_older: FromOlder | None = None
    ) -> None:
        super().__init_subclass__()
        former = (aliases,) if isinstance(aliases, str) else aliases
        for reason in _mistakes(cls.__name__, former, from_older):
            raise InvalidDefinition(cls.__name__, "", reason)
        for reason in _unannotated(cls):
            raise InvalidDefinition(cls.__name__, "", reason)
        dataclass(frozen=True)(cls)
        cls._from_older = None if from_older is None else staticmethod(from_older)
        for one in former:
            renamed[one] = cls.__name__
            claimed.setdefault(one, set()).add(cls.__name__)


def _mistakes(name: str, former: Any, from_older: Any) -> Any:
    """Yield what is wrong with the keywords of a message's class."""
    if not isinstance(former, tuple):
        yield f"aliases={former!r} must be a former name of the class, or a tuple of such names"
        return
    for one in former:
        if not isinstance(one, str) or not one.isidentifier():
            yield f"the alias {one!r} must be a former name of the class, as a text"
        elif one == name:
            yield f"the alias {one!r} is its name now: leave it out"
    if from_older is not None and not callable(from_older):
        yield f"from_older={from_older!r} must be a function"
    elif iscoroutinefunction(from_older):
        yield "from_older is asynchronous: it must be a plain function"


def _unannotated(cls: type[Any]) -> Any:
    """Yield the values of a message's class that are no fields, since they have no annotation."""
    for name, value in vars(cls).items():
        plain = isinstance(value, str | int | float | list | dict | tuple | None)
        if plain and not name.startswith("_") and name not in cls.__annotations__:
            kind = type(value).__name__
            yield f"{name} = {value!r:.40} is no field without an annotation: write {name}: {kind} = {value!r:.40}"


class Event(Message):
    """A fact that has happened. Name it in the past tense."""


class Command(Message):
    """A request to do something. Name it in the imperative."""
