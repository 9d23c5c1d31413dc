"""Procession: long business processes on Django, each shown live on its own state diagram.

The names here are what applications use; they are safe to import in `processes.py` and `handlers.py`.
"""

from typing import Any

from orchestrator.exceptions import CorruptInput, Permanent, Retry, Skip
from orchestrator.registry import Answer, CommandContext, handles, reacts_to

__all__ = [
    "Answer",
    "CommandContext",
    "CorruptInput",
    "Permanent",
    "Retry",
    "Skip",
    "handles",
    "reacts_to",
    "send_event",
    "start_process",
]


def __getattr__(name: str) -> Any:
    # These two need the tables, which Django has not loaded when it first imports this package.
    if name in ("send_event", "start_process"):
        from orchestrator.engine import processes  # noqa: PLC0415  needs the tables, see above

        return getattr(processes, name)
    raise AttributeError(name)
