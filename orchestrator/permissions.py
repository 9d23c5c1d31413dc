"""The permissions of operators' actions, made from the actions themselves after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import apps

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import ProcessInstance

VIEW_DATA = "view_data_processinstance"
"""To see what processes are about: data, events, commands, results."""


def create(using: str, **more: Any) -> None:
    """Makes the permissions that are missing in a database; for the signal `post_migrate`."""
    if not apps.is_installed("django.contrib.auth"):
        return
    from django.contrib.auth.models import Permission  # noqa: PLC0415  only where its app is installed
    from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415  only where its app is installed

    process = ContentType.objects.db_manager(using).get_for_model(ProcessInstance)
    known = Permission.objects.using(using).filter(content_type=process)
    data, is_new = known.get_or_create(
        codename=VIEW_DATA,
        defaults={"content_type": process, "name": "Can see the data of processes"},
    )
    if is_new:
        _keep_seeing(known, data)
    for operation in OPERATIONS.values():
        content_type = ContentType.objects.db_manager(using).get_for_model(
            operation.model
        )
        Permission.objects.using(using).get_or_create(
            content_type=content_type,
            codename=operation.codename,
            defaults={"name": str(operation.may)},
        )


def _keep_seeing(known: Any, data: Any) -> None:
    """Gives a permission that was a part of another one before to all who have that one."""
    view = known.filter(codename="view_processinstance").first()
    if view is None:
        return
    for group in view.group_set.all():
        group.permissions.add(data)
    for user in view.user_set.all():
        user.user_permissions.add(data)
