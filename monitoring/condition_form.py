"""The fields that add one condition to those of a list: without scripts too, as they are parameters of its address."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import QueryDict

from monitoring.conditions import LONGEST, OPERATORS, ConditionMistake, added

ADDED = ("add_join", "add_field", "add_operator", "add_value")
"""The parameters that add a condition, and then leave the address."""


@dataclass(frozen=True)
class ConditionForm:
    """What was filled in.

    Args:
        sent: whether the form was sent at all.
        join: "and" or "or".
        field: where the condition looks.
        operator: how it compares.
        value: with what.
        where: the conditions that are there; with the new one, if it was filled in rightly.
        mistake: what is wrong; "" if nothing is.
        wrong: in which of the fields: "field", "operator" or "value"; "" for the conditions before.
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
        """Reads the parameters of an address.

        Args:
            query: all of them.
            where: the conditions that are there.
        """
        sent = any(name in query for name in ADDED)
        join, field, operator, value = (
            query.get(name, "").replace("\0", "").strip()[:LONGEST] for name in ADDED
        )
        found = cls(sent, join or "and", field, operator, value, where)
        if not (field or operator or value):
            return found
        try:
            more = added(where, found.join, field, operator, value)
        except ConditionMistake as mistake:
            return replace(found, mistake=str(mistake), wrong=mistake.field)
        return replace(found, where=more)
