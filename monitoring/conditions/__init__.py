"""Conditions on the data of processes, as people write them: `amount > 100 and (country = JP or vip = true)`.

text -> reading -> a tree of conditions -> asked of the values that the data has at their paths

It is plain Python, so that a condition means the same on every database: that only hands the values out (see
`queries.data`).
"""

from monitoring.conditions.reading import LONGEST, ConditionMistake, added, read
from monitoring.conditions.tree import (
    OPERATORS,
    ConditionGroup,
    Conditions,
    DataCondition,
    Path,
)

__all__ = [
    "LONGEST",
    "OPERATORS",
    "ConditionGroup",
    "ConditionMistake",
    "Conditions",
    "DataCondition",
    "Path",
    "added",
    "read",
]
