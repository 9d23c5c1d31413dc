"""From an object of the application to its processes."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Model, Q

from orchestrator import registry
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet


def processes_of(obj: Model) -> ProcessInstanceQuerySet:
    """Return the processes of an object of the application, newest first.

    Their definitions name the object's model as their `subject`, and their correlation key is the object's value. A
    definition also has the objects of proxies of its model, and of models that inherit it. For a model that no
    definition names the result is empty, so that a page outlives the last definition.

    Args:
        obj: the object, as it is stored.

    Raises:
        TypeError: this is no object of a model.
        ValueError: the object is not stored. Its key may still change, so an empty result would be misleading.
    """
    if not isinstance(obj, Model):
        raise TypeError(f"processes_of takes an object of a model, not {obj!r}")
    if obj._state.adding or obj.pk is None:
        raise ValueError(f"{obj!r} is not stored, so it has no processes yet")
    names = defaultdict[str, list[str]](list)
    for name, subject in registry.subjects():
        if key := subject.key_of(obj):
            names[key].append(name)
    # The index of keys has this condition too.
    rows = ProcessInstance.objects.exclude(correlation_key="")
    rows = rows.filter(correlation_key__in=names)
    for key, some in names.items():
        # With a plain condition, the database may search all processes of a name.
        rows = rows.exclude(~Q(name__in=some), correlation_key=key)
    return rows.newest_first()
