"""The permissions of operators' actions, made from the actions themselves after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import apps

from orchestrator.engine.operations import OPERATIONS


def create(using: str, **more: Any) -> None:
    """Makes the permissions that are missing in a database; for the signal `post_migrate`."""
    if not apps.is_installed("django.contrib.auth"):
        return
    from django.contrib.auth.models import Permission  # noqa: PLC0415  only where its app is installed
    from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415  only where its app is installed

    for operation in OPERATIONS.values():
        content_type = ContentType.objects.db_manager(using).get_for_model(
            operation.model
        )
        Permission.objects.using(using).get_or_create(
            content_type=content_type,
            codename=operation.codename,
            defaults={"name": str(operation.may)},
        )
