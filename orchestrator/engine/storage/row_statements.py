"""Writes that keep their rows until they are sent, so that those of several changes can be put together before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from orchestrator.engine.storage.batch import Statement


class Condition(NamedTuple):
    """What else holds of the rows of a statement: SQL that begins with AND, and its parameters."""

    sql: str
    params: tuple[Any, ...]


ALL = Condition("", ())


class RowStatement(Statement):
    """A write of one table's rows; its SQL is made only when it is sent by itself."""

    __slots__ = ()

    @property
    def sql(self) -> str:
        return self._text()[0]

    @property
    def params(self) -> Sequence[Any]:
        return self._text()[1]

    def _text(self) -> tuple[str, Sequence[Any]]:
        if not self._sql:
            self._sql, self._params = self._compiled()
        return self._sql, self._params

    @abstractmethod
    def _compiled(self) -> tuple[str, Sequence[Any]]:
        """Its SQL and the parameters."""
