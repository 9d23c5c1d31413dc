"""The saved views of a person and of the team."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.urls import reverse

from monitoring.base.masking import sees_data
from monitoring.lists.processes.filters import Filters
from orchestrator.models import SavedView


def views_for(
    user: Any, definitions: Collection[str] | None = None
) -> QuerySet[SavedView]:
    """Return the views of the team and of a user by name; views on data only if the user may see data.

    Args:
        user: the reader.
        definitions: the definitions whose lists the user may see; None for all.
    """
    mine = Q(owner=None) | Q(owner=user.pk)
    found = SavedView.objects.filter(mine).order_by("name", "pk")
    if not sees_data(user):
        found = found.exclude(about__has_key="where")
    if definitions is None:
        return found
    return found.filter(about__definition__in=sorted(definitions))


def place_of_view(view: SavedView) -> str:
    """Return the address of a view's list, without filters that the running code does not know."""
    given = {
        name: value for name, value in view.about.items() if name in Filters.names()
    }
    return f"{reverse('monitoring:instances')}?{urlencode(given)}"
