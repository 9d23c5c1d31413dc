"""The permissions of operators' actions, created from the operations after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import apps

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import ProcessInstance

VIEW_DATA = "view_data_processinstance"
"""The permission to see data, events, commands and results of processes."""


def create_permissions(using: str, **more: Any) -> None:
    """Create the missing permissions in a database; a receiver of the signal `post_migrate`."""
    if not apps.is_installed("django.contrib.auth"):
        return
    from django.contrib.auth.models import Permission  # noqa: PLC0415  only where its app is installed
    from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415  only where its app is installed

    types = ContentType.objects.db_manager(using)
    process = types.get_for_model(ProcessInstance)
    known = Permission.objects.using(using).filter(content_type=process)
    data, is_new = known.get_or_create(
        codename=VIEW_DATA,
        defaults={"content_type": process, "name": "Can see the data of processes"},
    )
    if is_new:
        _grant_to_viewers(known, data)
    for operation in OPERATIONS.values():
        Permission.objects.using(using).get_or_create(
            content_type=types.get_for_model(operation.model),
            codename=operation.codename,
            defaults={"name": str(operation.may)},
        )


def _grant_to_viewers(known: Any, data: Any) -> None:
    """Give the new permission to all who have the permission to view, which included it before."""
    view = known.filter(codename="view_processinstance").first()
    if view is None:
        return
    for group in view.group_set.all():
        group.permissions.add(data)
    for user in view.user_set.all():
        user.user_permissions.add(data)
