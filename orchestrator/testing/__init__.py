"""Tests of processes, in the test's own process, without Redis or workers; docs/testing.md shows how.

Imports are lazy: pytest loads the plugin in this package in every run, even without Django.
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

if TYPE_CHECKING:  # for type checkers and editors: `__getattr__` has any name
    from orchestrator.testing.clock import pass_time, run
    from orchestrator.testing.process import Process, found, started
    from orchestrator.testing.replacements import failing, registered, replaced
else:
    _HOMES = {
        "clock": ["pass_time", "run"],
        "process": ["Process", "found", "started"],
        "replacements": ["failing", "registered", "replaced"],
    }

    def __getattr__(name):
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
