"""The rows of the engine's tables that some work leaves, which is undone; to compare two ways of doing it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group
from django.db import models, transaction

from orchestrator.engine.storage import definitions

Rows = dict[str, list[Any]]
"""By the name of the table, what each row says, in an order of what they say."""

TABLES: tuple[type[models.Model], ...] = (
    *apps.get_app_config("orchestrator").get_models(),
    Group,  # what handlers inside the commit write
)


def left_by(work: Callable[[], object], tables: Any = TABLES) -> Rows:
    """Do some work and return the rows that are there then; all that it has written is undone."""
    with undone():
        work()
        return {table.__name__: _rows(table) for table in tables}


@contextmanager
def undone() -> Iterator[None]:
    """Undo what the block writes."""
    definitions.forget_definitions()
    whole = transaction.atomic()
    whole._from_testcase = True  # type: ignore[attr-defined]  # a durable block is refused inside any other
    with whole:
        yield
        transaction.set_rollback(True)


def _rows(table: type[models.Model]) -> list[Any]:
    rows = table._default_manager.all()
    nulls = [field for field in table._meta.concrete_fields if field.null]
    asked = {
        f"{field.name}_is_null": models.Q(**{f"{field.name}__isnull": True})
        for field in nulls
    }
    return sorted((_said(row, asked) for row in rows.annotate(**asked)), key=repr)


def _said(row: models.Model, asked: Any) -> dict[str, Any]:
    """What a row says, but for moments, for keys that the database gives, and for who has written it."""
    said = {name: getattr(row, name) for name in asked}
    for field in row._meta.concrete_fields:
        target = field.target_field if isinstance(field, models.ForeignKey) else field
        of_the_database = isinstance(target, models.AutoField | models.DateTimeField)
        if not of_the_database and field.attname != "owner":
            said[field.attname] = getattr(row, field.attname)
    if "cause" in said:  # the number of an event, a visit or an action
        said["cause"] = said["cause"].partition(":")[0]
    return said
