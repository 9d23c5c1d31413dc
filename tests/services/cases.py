"""A table of cases that one test walks: its set-up is made once, and all that is wrong is told at once."""

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from pytest_django.fixtures import Settings

from orchestrator.engine.storage import definitions
from tests.conftest import Writes
from tests.services.invariants import broken
from tests.services.words import words

__all__ = ["cases", "words"]

Test = Callable[..., None]
WRONG = (Exception, BaseExceptionGroup, pytest.fail.Exception)


def cases(names: str, *rows: Any) -> Callable[[Test], Test]:
    """Have a test called for each row of a table; what a call writes is undone before the next.

    As `pytest.mark.parametrize` in one test: fixtures are made once. Where the database is in a transaction, each call
    finds rows, people, cookies, patches and settings as the fixtures left them, and the invariants hold after one that
    has written, unless the module has an `invariants` of its own.

    Args:
        names: of the arguments that a row fills, as "where, keys".
        rows: each a tuple; the value itself where there is one name.
    """
    filled = names.replace(",", " ").split()

    def walked(test: Test) -> Test:
        @functools.wraps(test)
        def walk(**fixtures: Any) -> None:
            check = not hasattr(sys.modules[test.__module__], "invariants")
            wrong = []
            for row in rows:
                given = zip(filled, row if filled[1:] else (row,), strict=True)
                case = dict(given)
                try:
                    with as_it_was(fixtures, check) as again:
                        test(**again, **case)
                except WRONG as error:
                    error.add_note(f"where {case}")
                    wrong.append(error)
            if wrong:
                told = f"{len(wrong)} of {len(rows)} cases"
                raise BaseExceptionGroup(told, wrong)

        signature = inspect.signature(test)
        left = [one for one in signature.parameters.values() if one.name not in filled]
        walk.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        del walk.__wrapped__  # pytest would ask for the rows' names as fixtures
        return walk

    return walked


@contextmanager
def as_it_was(fixtures: dict[str, Any], check: bool) -> Iterator[dict[str, Any]]:
    """Give fixtures that one case may change; in the end its rows, cookies, patches and settings are undone."""
    definitions.forget_definitions()
    with ExitStack() as stack:
        again = {name: _own(one, stack) for name, one in fixtures.items()}
        if connection.in_atomic_block:
            stack.enter_context(_undone(check))
        yield again


@contextmanager
def _undone(check: bool) -> Iterator[None]:
    whole = transaction.atomic()
    whole._from_testcase = True  # type: ignore[attr-defined]  # a durable block is refused inside any other
    writes = Writes()
    with whole:
        with connection.execute_wrapper(writes):
            yield
        if check and writes.seen:
            assert broken() == []
        transaction.set_rollback(True)


def _own(value: Any, stack: ExitStack) -> Any:
    """What one case is given for a fixture's value."""
    if isinstance(value, pytest.MonkeyPatch):
        return stack.enter_context(pytest.MonkeyPatch.context())
    if isinstance(value, Client):
        stack.callback(setattr, value, "cookies", copy.deepcopy(value.cookies))
    if isinstance(value, Settings):
        own = Settings(_is_pytest_django=True)
        stack.callback(own._finalize)
        return own
    several = value.values() if isinstance(value, dict) else value
    if isinstance(value, Model) or (
        isinstance(value, list | dict)
        and value
        and all(isinstance(one, Model) for one in several)
    ):
        return copy.deepcopy(value)
    return value
