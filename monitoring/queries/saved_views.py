"""The views that somebody may open: the team's and their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.urls import reverse

from monitoring.masking import sees_data
from monitoring.queries.instances.filters import Filters
from orchestrator.models import SavedView


def views_for(
    user: Any, definitions: Collection[str] | None = None
) -> QuerySet[SavedView]:
    """Those of the team and of a user, in the order of their names; on data only for who may see it.

    Args:
        user: whose.
        definitions: those whose lists the user may see; None for all lists.
    """
    mine = Q(owner=None) | Q(owner=user.pk)
    found = SavedView.objects.filter(mine).order_by("name", "pk")
    if not sees_data(user):
        found = found.exclude(about__has_key="where")
    if definitions is None:
        return found
    return found.filter(about__definition__in=sorted(definitions))


def place_of_view(view: SavedView) -> str:
    """The address of the list that a view is; what the running code does not know of it is left out."""
    given = {
        name: value for name, value in view.about.items() if name in Filters.names()
    }
    return f"{reverse('monitoring:instances')}?{urlencode(given)}"
