"""The processes that a module declares."""

from collections.abc import Mapping
from typing import Any

from orchestrator.definition import ProcessManager, Workflow


def declared(names: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the workflows and process managers of a module's names, but those that it has from elsewhere."""
    kinds = (one for one in names.values() if isinstance(one, type))
    return tuple(
        kind
        for kind in kinds
        if issubclass(kind, Workflow | ProcessManager)
        and kind.__module__ == names["__name__"]
    )
