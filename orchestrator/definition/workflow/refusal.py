"""How a workflow is refused."""

from __future__ import annotations

from typing import NoReturn

from orchestrator.exceptions import InvalidDefinition


def refuse(definition: str, row: object, reason: str) -> NoReturn:
    """Refuses a workflow.

    Args:
        definition: the name of the class.
        row: the row, or None when the mistake is not in one.
        reason: what is wrong.

    Raises:
        InvalidDefinition: always.
    """
    raise InvalidDefinition(definition, "" if row is None else str(row), reason)
