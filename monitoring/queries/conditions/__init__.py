"""Conditions on the data of processes, as people write them: `amount > 100 and (country = JP or vip = true)`.

A text is parsed into a tree of conditions. The tree is checked against the values at the paths that it names.

Python checks the conditions, so that they mean the same on every database. The database only reads the values (see
`queries.data`).
"""

from monitoring.queries.conditions.parser import (
    LONGEST,
    ConditionMistake,
    add_condition,
    parse_conditions,
)
from monitoring.queries.conditions.tree import (
    OPERATORS,
    ConditionGroup,
    ConditionTree,
    DataCondition,
    Path,
)

__all__ = [
    "LONGEST",
    "OPERATORS",
    "ConditionGroup",
    "ConditionMistake",
    "ConditionTree",
    "DataCondition",
    "Path",
    "add_condition",
    "parse_conditions",
]
