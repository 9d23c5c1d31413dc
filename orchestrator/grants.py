"""Permissions that hold for the processes of one definition, as Django has them for objects.

A permission of Django's holds for all definitions. A grant gives a permission to the members of a group for one
definition. The engine and the console call `definitions_of`. A project with `GrantsBackend` in its
`AUTHENTICATION_BACKENDS` can call `user.has_perm("orchestrator.retry_processinstance", process)`.

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

CACHE_ATTRIBUTE = "_procession_grants"
"""The attribute of a user object that keeps the grants of a request, as Django's backend keeps permissions."""

PARTS = (Incident, StepRun, Checkpoint, IssuedCommand)


def grants_of(user: Any) -> Grants:
    """Return the grants of a user, read once; an inactive user, or one without groups, has none."""
    noted = getattr(type(user), "procession_grants", None)
    if noted is not None:  # a user object that records each question
        found: Grants = noted(user)
        return found
    known: Grants | None = getattr(user, CACHE_ATTRIBUTE, None)
    if known is None:
        known = _read(user)
        setattr(user, CACHE_ATTRIBUTE, known)
    return known


def definitions_of(user: Any, permission: str) -> frozenset[str] | None:
    """Return the definitions for which a user has a permission; None for all."""
    if user.has_perm(permission):
        return None
    return grants_of(user).get(permission, frozenset())


def definition_name_of(thing: Any) -> str:
    """Return the name of the definition that an object belongs to; "" without one.

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
    """An authentication backend that answers Django's object permissions from grants. It does not sign people in."""

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions that grants give a user for an object of one definition."""
        name = definition_name_of(obj)
        if not name:
            return set()
        found = grants_of(user_obj).items()
        return {permission for permission, names in found if name in names}


def _of_event(event: InboxEvent) -> str:
    """Return the definition of an event's process; without a process the one that it is addressed to, or ""."""
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
    """Return whether the project's user model has Django's groups."""
    try:
        return bool(user._meta.get_field("groups").related_model is Group)
    except (AttributeError, FieldDoesNotExist):
        return False
