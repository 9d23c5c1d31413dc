"""Permissions that hold for the processes of one definition, as Django has them for objects.

A permission that somebody has by Django holds for all definitions. A grant gives it to the members of a group for what
is of one definition. The engine and the console ask `definitions_of` themselves. A project that has `GrantsBackend` in
its `AUTHENTICATION_BACKENDS` can ask as Django does, `user.has_perm("orchestrator.retry_processinstance", process)`.

Source: Django's documentation, "Customizing authentication in Django", handling object permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import Group
from django.core.exceptions import FieldDoesNotExist, ObjectDoesNotExist

from orchestrator.models import (
    Checkpoint,
    Definition,
    DefinitionGrant,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)

Grants = Mapping[str, frozenset[str]]
"""The names of definitions by permission."""

KEPT = "_procession_grants"
"""Where a user, who lives as long as a request, has them once they were read; as Django does with its permissions."""

PARTS = (Incident, StepRun, Checkpoint, IssuedCommand)


def grants_of(user: Any) -> Grants:
    """What a user may by grants, read once: nothing for who is not active, or has no groups of Django's."""
    noted = getattr(type(user), "procession_grants", None)
    if noted is not None:  # somebody takes notes of what is asked about them
        found: Grants = noted(user)
        return found
    known: Grants | None = getattr(user, KEPT, None)
    if known is None:
        known = _read(user)
        setattr(user, KEPT, known)
    return known


def definitions_of(user: Any, permission: str) -> frozenset[str] | None:
    """The definitions for which a user has a permission; None for all that there are."""
    if user.has_perm(permission):
        return None
    return grants_of(user).get(permission, frozenset())


def definition_of(thing: Any) -> str:
    """The name of the definition that something is of; "" where it is of none.

    Args:
        thing: a process, a part of one, an event, a failure, a definition or its name.
    """
    if isinstance(thing, PARTS):
        thing = thing.instance
    if isinstance(thing, InboxEvent):
        return _of_event(thing)
    if isinstance(thing, (ProcessInstance, Definition)):
        return thing.name
    return thing if isinstance(thing, str) else ""


class GrantsBackend(BaseBackend):
    """Lets Django ask for grants; it signs nobody in, and gives nothing that holds for all definitions."""

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """What a user may do with something of one definition."""
        name = definition_of(obj)
        if not name:
            return set()
        found = grants_of(user_obj).items()
        return {permission for permission, names in found if name in names}


def _of_event(event: InboxEvent) -> str:
    """Of an event that belongs to no process that there is: to which definition it is addressed, if to one."""
    try:
        process = event.process
    except ObjectDoesNotExist:
        process = None
    return process.name if process is not None else event.target


def _read(user: Any) -> Grants:
    if not getattr(user, "is_active", False) or not _has_groups(user):
        return {}
    rows = DefinitionGrant.objects.filter(group__in=user.groups.values("pk")).order_by()
    found: dict[str, set[str]] = {}
    for app, codename, name in rows.values_list(
        "permission__content_type__app_label", "permission__codename", "definition"
    ):
        if name:
            found.setdefault(f"{app}.{codename}", set()).add(name)
    return {permission: frozenset(names) for permission, names in found.items()}


def _has_groups(user: Any) -> bool:
    """Whether users of this kind, which may be the project's own, are members of Django's groups."""
    try:
        return bool(user._meta.get_field("groups").related_model is Group)
    except (AttributeError, FieldDoesNotExist):
        return False
