"""Running processes in the test's own process, without Redis or workers; docs/testing.md shows how.

Nothing is imported before it is used: pytest loads the plugin beside this in every run, also where there is no Django.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Process",
    "failing",
    "found",
    "pass_time",
    "registered",
    "replaced",
    "run",
    "started",
]

if (
    TYPE_CHECKING
):  # what checkers and editors read; a `__getattr__` would let any name pass
    from orchestrator.testing.clock import pass_time, run
    from orchestrator.testing.process import Process, found, started
    from orchestrator.testing.stand_ins import failing, registered, replaced
else:
    _HOMES = {
        "Process": "process",
        "failing": "stand_ins",
        "found": "process",
        "pass_time": "clock",
        "registered": "stand_ins",
        "replaced": "stand_ins",
        "run": "clock",
        "started": "process",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
