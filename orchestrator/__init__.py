"""Procession: long business processes on Django, each shown live on its own state diagram.

The names here are what applications use; they are safe to import in `processes.py` and `handlers.py`. Each name is
imported on its first use: some need models, which Django loads after this package, and pytest imports the package in
every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Answer",
    "CommandContext",
    "CorruptInput",
    "Envelope",
    "Permanent",
    "Poll",
    "ProcessStart",
    "Receipt",
    "Retry",
    "Skip",
    "asend_event",
    "asend_events",
    "astart_process",
    "astart_processes",
    "handles",
    "processes_of",
    "reacts_to",
    "send_event",
    "send_events",
    "start_process",
    "start_processes",
]

# Type checkers and editors read this branch: `__getattr__` alone would accept any name.
if TYPE_CHECKING:
    from orchestrator.configuration.version import __version__ as __version__
    from orchestrator.definition.declarations.handlers import Answer, CommandContext
    from orchestrator.engine.processes.events import (
        Envelope,
        asend_event,
        asend_events,
        send_event,
        send_events,
    )
    from orchestrator.engine.processes.objects import processes_of
    from orchestrator.engine.processes.starts import (
        ProcessStart,
        astart_process,
        astart_processes,
        start_process,
        start_processes,
    )
    from orchestrator.engine.storage.receipts import Receipt
    from orchestrator.exceptions import CorruptInput, Permanent, Poll, Retry, Skip
    from orchestrator.registry import handles, reacts_to
else:
    _HOMES = {
        "configuration.version": "__version__",
        "definition.declarations.handlers": "Answer CommandContext",
        "engine.processes.events": "Envelope asend_event asend_events send_event send_events",
        "engine.processes.objects": "processes_of",
        "engine.processes.starts": "ProcessStart astart_process astart_processes start_process start_processes",
        "engine.storage.receipts": "Receipt",
        "exceptions": "CorruptInput Permanent Poll Retry Skip",
        "registry": "handles reacts_to",
    }

    def __getattr__(name):
        for home, names in _HOMES.items():
            if name in names.split():
                return getattr(import_module(f"orchestrator.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
