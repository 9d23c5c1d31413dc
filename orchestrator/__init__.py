"""Procession: long business processes on Django, each shown live on its own state diagram.

The names here are what applications use; they are safe to import in `processes.py` and `handlers.py`. Each is imported
when it is used: some need the tables, which Django has not loaded when it first imports this package, and pytest
imports it in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Answer",
    "CommandContext",
    "CorruptInput",
    "Envelope",
    "Permanent",
    "Receipt",
    "Retry",
    "Skip",
    "handles",
    "reacts_to",
    "send_event",
    "send_events",
    "start_process",
]

# What checkers and editors read; a `__getattr__` would let any name pass.
if TYPE_CHECKING:
    from orchestrator.engine.processes import (
        Envelope,
        send_event,
        send_events,
        start_process,
    )
    from orchestrator.engine.storage.receipts import Receipt
    from orchestrator.exceptions import CorruptInput, Permanent, Retry, Skip
    from orchestrator.registry import Answer, CommandContext, handles, reacts_to
else:
    _HOMES = {
        "Answer": "orchestrator.registry",
        "CommandContext": "orchestrator.registry",
        "CorruptInput": "orchestrator.exceptions",
        "Envelope": "orchestrator.engine.processes",
        "Permanent": "orchestrator.exceptions",
        "Receipt": "orchestrator.engine.storage.receipts",
        "Retry": "orchestrator.exceptions",
        "Skip": "orchestrator.exceptions",
        "handles": "orchestrator.registry",
        "reacts_to": "orchestrator.registry",
        "send_event": "orchestrator.engine.processes",
        "send_events": "orchestrator.engine.processes",
        "start_process": "orchestrator.engine.processes",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
