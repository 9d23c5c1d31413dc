"""The admin of all tables, read-only except for grants. Operators act through the engine, with a reason.

`ProcessesMixin` is for the application's own admin.
"""

from monitoring.admin import bulk, failures, grants, notices, processes, tokens, workers
from monitoring.admin.objects import ProcessesMixin

__all__ = [
    "ProcessesMixin",
    "bulk",
    "failures",
    "grants",
    "notices",
    "processes",
    "tokens",
    "workers",
]
