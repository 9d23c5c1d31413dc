"""What several parts of a process's page ask of it, which is read once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from orchestrator.models import ProcessInstance

Asked = TypeVar("Asked")


def once_of(
    instance: ProcessInstance, kind: Callable[[ProcessInstance], Asked]
) -> Asked:
    """The one of its kind that belongs to this process, as long as it is in memory.

    Args:
        instance: the process.
        kind: is made of it, where there is none yet.
    """
    # By a name of its own, and not in one place for all: a copy, which stands for another moment, must not fill it.
    name = f"_once_{kind.__name__}"
    if name not in vars(instance):
        vars(instance)[name] = kind(instance)
    return cast(Asked, vars(instance)[name])
