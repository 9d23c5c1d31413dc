"""The rules of migrations: workers of the release before go on writing and reading while the tables are today's."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from orchestrator.migrations._operations import AddIndexConcurrently

CHUNKS = ("iterator(", "[:", "LIMIT")
"""What the code of a migration has that reads or writes a table in parts."""

RENAMES = (
    operations.RenameField,
    operations.RenameModel,
    operations.AlterModelTable,
)
CONSTRAINTS = (operations.AddConstraint, operations.AlterUniqueTogether)


class Rules:
    """What migrations may do after a release.

    Args:
        release: the release before.
        last_used: what a migration removes ("steprun.given_back", "repair"), and the release that used it last.
    """

    def __init__(self, release: str, last_used: Mapping[str, str]) -> None:
        self.release = release
        self.last_used = last_used
        self.made: set[str] = set()
        """The models that were made since: workers of the release do not know them."""

    def findings(self, migration: Migration, state: ProjectState) -> Iterator[str]:
        """Yield what is wrong with a migration; bring the state before it to the state after it."""
        for operation in migration.operations:
            for wrong in self._wrong(operation, migration, state):
                where = f"{migration.app_label} {migration.name}, {named(operation)}"
                yield f"{where}: {wrong}"
            operation.state_forwards(migration.app_label, state)
            if isinstance(operation, operations.CreateModel):
                self.made.add(operation.name_lower)

    def _wrong(
        self, operation: Any, migration: Migration, state: ProjectState
    ) -> Iterator[str]:
        model = getattr(operation, "model_name_lower", "")
        if model in self.made:
            return
        before = state.models.get((migration.app_label, model))
        match operation:
            case operations.RunPython() | operations.RunSQL():
                yield from unchunked(operation)
            case operations.AddIndex():
                yield from plain_index(operation, migration)
            case operations.AddField():
                yield from self._added(operation.field)
            case operations.AlterField() if before:
                yield from self._narrowed(
                    before.fields[operation.name], operation.field
                )
            case operations.RemoveField() | operations.DeleteModel():
                yield from self._removed(target(operation))
            case _:
                yield from self._refused(operation)

    def _refused(self, operation: Operation) -> Iterator[str]:
        if isinstance(operation, RENAMES):
            yield f"{self.release} uses the old name: add the new one, and remove the old one a release later"
        if isinstance(operation, CONSTRAINTS):
            yield f"{self.release} may write rows that break it: add it a release after the code that keeps to it"

    def _removed(self, what: str) -> Iterator[str]:
        last = self.last_used.get(what)
        if last is None:
            yield f'list "{what}" in LAST_USED with the release that used it last, and remove it a release later'
        elif last == self.release:
            yield f"{last} uses it, which runs beside today's code: remove it a release later"

    def _added(self, field: Any) -> Iterator[str]:
        if not (field.null or field.has_db_default() or field.many_to_many):
            yield f"give it db_default=... or null=True: {self.release} inserts rows without it"
        if field.unique:
            yield f"drop unique=True: rows of {self.release} have the same value, and the index locks the table"

    def _narrowed(self, before: Any, field: Any) -> Iterator[str]:
        if before.null and not field.null:
            yield f"keep null=True: {self.release} may write null"
        if before.has_db_default() and not (field.has_db_default() or field.null):
            yield f"keep db_default: {self.release} may insert rows without it"
        if field.unique and not before.unique:
            yield f"drop unique=True: {self.release} may write a value twice"
        if before.get_internal_type() != field.get_internal_type():
            yield "add a field of the new type instead: PostgreSQL writes the whole table anew under a lock"
        elif (field.max_length or 0) < (before.max_length or 0):
            yield f"keep max_length={before.max_length}: {self.release} may write longer values"


def unchunked(operation: Operation) -> Iterator[str]:
    """Yield that code or SQL goes over a whole table in one statement or one list, where it can be told."""
    if isinstance(operation, operations.RunPython):
        code = inspect.getsource(operation.code)
        whole = ".objects" in code
    else:
        code = str(getattr(operation, "sql", ""))
        whole = code.lstrip().upper().startswith(("UPDATE", "DELETE"))
    if whole and not any(sign in code for sign in CHUNKS):
        yield "go over the rows in chunks, by primary key: a large table is locked, or read into memory, otherwise"


def plain_index(operation: Operation, migration: Migration) -> Iterator[str]:
    """Yield that an index stops the workers while it is built."""
    if not isinstance(operation, AddIndexConcurrently):
        yield "use AddIndexConcurrently of orchestrator.migrations._operations: a plain index stops all writers"
    elif migration.atomic:
        yield "set atomic = False on the migration: no index is built concurrently inside a transaction"


def target(operation: Any) -> str:
    """Return what an operation concerns: "model" or "model.field"."""
    if isinstance(operation, operations.DeleteModel):
        return operation.name_lower
    names = [getattr(operation, "model_name_lower", ""), getattr(operation, "name", "")]
    return ".".join(filter(None, names))


def named(operation: Operation) -> str:
    return f"{type(operation).__name__} {target(operation)}".strip()
