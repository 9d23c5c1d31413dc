"""Who has a correlation key: of a definition one live process at most, as a constraint of the table says too."""

from __future__ import annotations

from orchestrator.exceptions import KeyTaken
from orchestrator.models import ProcessInstance


def check_free(name: str, key: str) -> None:
    """Says which live process stands in the way of another one with its key.

    Args:
        name: of the definition.
        key: the correlation key; "" is nobody's.

    Raises:
        KeyTaken: a live process of the definition has it.
    """
    if not key:
        return
    same = ProcessInstance.objects.live().filter(name=name, correlation_key=key)
    holder = same.values_list("pk", flat=True).first()
    if holder is not None:
        raise KeyTaken(name, key, holder)
