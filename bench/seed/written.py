"""The tables of scenarios, and all their rows at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core import serializers
from django.db.models import Model, QuerySet

from orchestrator.engine.sql.batch import database_now

APPS = ("orchestrator", "order_listing", "support_inquiry")
"""The apps whose tables the scenarios write."""

NOT_COPIED = ("definition", "worker")
"""The tables of the orchestrator that belong to the whole set-up."""


@dataclass(frozen=True)
class WrittenRows:
    """The rows of all these tables.

    Args:
        moment: the time of the reading, in ISO form: later times are in the future of the process.
        rows: as Django's serializer writes them.
    """

    moment: str
    rows: str


def copied_models() -> list[type[Model]]:
    """Return the models whose rows are copied."""
    models = [
        model for label in APPS for model in apps.get_app_config(label).get_models()
    ]
    return [model for model in models if model._meta.model_name not in NOT_COPIED]


def read_rows() -> WrittenRows:
    """Return all rows that are there now."""
    found = [row for model in copied_models() for row in rows_of(model)]
    return WrittenRows(database_now().isoformat(), serializers.serialize("json", found))


def rows_of(model: type[Model]) -> QuerySet[Any]:
    return model._default_manager.all()
