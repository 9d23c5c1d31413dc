"""The form that adds a condition to a list. Its fields are parameters of the address, so it needs no script."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import QueryDict

from monitoring.queries.conditions import (
    LONGEST,
    OPERATORS,
    ConditionMistake,
    add_condition,
)

ADDED = ("add_join", "add_field", "add_operator", "add_value")
"""The parameters that add a condition; a redirect removes them from the address."""


@dataclass(frozen=True)
class ConditionForm:
    """The fields of the form.

    Args:
        sent: whether the form was sent.
        join: "and" or "or".
        field: the field of the new condition.
        operator: its comparison.
        value: its value.
        where: the conditions of the list, with the new one if it is valid.
        mistake: the mistake; "" for none.
        wrong: the field with the mistake: "field", "operator" or "value"; "" for the conditions before.
    """

    sent: bool = False
    join: str = "and"
    field: str = ""
    operator: str = ""
    value: str = ""
    where: str = ""
    mistake: str = ""
    wrong: str = ""

    operators = tuple(OPERATORS)

    @classmethod
    def from_query(cls, query: QueryDict, where: str) -> ConditionForm:
        """Read the parameters of an address.

        Args:
            query: all of them.
            where: the conditions of the list.
        """
        sent = any(name in query for name in ADDED)
        join, field, operator, value = (
            query.get(name, "").replace("\0", "").strip()[:LONGEST] for name in ADDED
        )
        found = cls(sent, join or "and", field, operator, value, where)
        if not (field or operator or value):
            return found
        try:
            more = add_condition(where, found.join, field, operator, value)
        except ConditionMistake as mistake:
            return replace(found, mistake=str(mistake), wrong=mistake.field)
        return replace(found, where=more)
