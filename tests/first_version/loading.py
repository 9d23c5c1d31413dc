"""Brings the rows of an earlier version into an empty database, with its tables as they were then."""

import gzip
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import DateTimeField, Model
from django.utils import timezone

FIRST = Path(__file__).with_name("rows.jsonl.gz")
LATER = Path(__file__).with_name("rows_of_d584bb8.jsonl.gz")


def load(file: Path = FIRST) -> None:
    """Make the tables as they were, and fill them.

    All times are shifted, so that the moment in which the rows were stored is now.
    """
    lines = read(file)
    first = next(lines)
    executor = MigrationExecutor(connection)
    then = list(dict(first["migrations"]).items())  # the last one of each app
    executor.migrate(then)
    models = executor.loader.project_state(then).apps
    passed = timezone.now() - datetime.fromisoformat(first["moment"])
    rows: dict[Any, list[Model]] = {}
    for line in lines:
        model = models.get_model(line["model"])
        rows.setdefault(model, []).append(row(model, line["row"], passed))
    with transaction.atomic():
        for model, found in rows.items():
            model.objects.bulk_create(found)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(rows)):
            cursor.execute(statement)


def there_and_back() -> bool:
    """Tell whether the texts of step runs are as before when their migration was undone."""
    before = texts()
    for name in ("0002", "0001"):
        call_command("migrate", "orchestrator", name, verbosity=0)
    return texts() == before


def texts() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, blocked_on, error FROM orchestrator_steprun ORDER BY id"
        )
        return list(cursor.fetchall())


def read(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of the file: when it was and what was migrated, and then the rows."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def row(model: Any, values: dict[str, Any], passed: timedelta) -> Model:
    """Return a row of a model as it was then."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    given = {name: fields[name].to_python(value) for name, value in values.items()}
    for name, value in given.items():
        if value is not None and isinstance(fields[name], DateTimeField):
            given[name] = value + passed
    found: Model = model(**given)
    return found
