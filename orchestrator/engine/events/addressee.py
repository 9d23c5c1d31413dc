"""The process that an event finds by its correlation key."""

from __future__ import annotations

from uuid import UUID

from orchestrator.models import ProcessInstance


def of_key(name: str, key: str, *, starts: bool) -> UUID | None:
    """The live process of a key, else the last one, unless the event starts another; None where there is none.

    Args:
        name: of the definition.
        key: the correlation key, not empty.
        starts: whether the event starts a process.
    """
    known = ProcessInstance.objects.filter(name=name, correlation_key=key)
    pk = known.live().values_list("pk", flat=True).first()
    if pk is None and not starts:
        pk = known.order_by("-id").values_list("pk", flat=True).first()
    return pk
