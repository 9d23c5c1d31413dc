"""Operations of our migrations."""

from typing import Any

from django.db import NotSupportedError
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddIndex, RemoveIndex

from orchestrator.configuration.migration_limits import unlimited_waits

IS_VALID = """
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))
"""


class AddIndexConcurrently(AddIndex):
    """Add an index while others write: concurrently on PostgreSQL, and plainly elsewhere.

    The migration needs `atomic = False`. It may be repeated after an interruption: a complete index stays, and an
    incomplete one is built again. Django's own operation needs psycopg, which a project on SQLite need not have.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor == "postgresql":
            self._add_concurrently(schema_editor, model)
        elif not self._exists(schema_editor, model):
            schema_editor.add_index(model, self.index)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor == "postgresql":
            self._remove_concurrently(schema_editor, model)
        elif self._exists(schema_editor, model):
            schema_editor.remove_index(model, self.index)

    def _add_concurrently(self, schema_editor: Any, model: Any) -> None:
        self._refuse_transaction(schema_editor)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(IS_VALID, [self.index.name])
            row = cursor.fetchone()
        if row == (True,):
            return
        with unlimited_waits(schema_editor.connection):
            if row is not None:
                schema_editor.remove_index(model, self.index, concurrently=True)
            schema_editor.add_index(model, self.index, concurrently=True)

    def _remove_concurrently(self, schema_editor: Any, model: Any) -> None:
        self._refuse_transaction(schema_editor)
        with unlimited_waits(schema_editor.connection):
            schema_editor.remove_index(model, self.index, concurrently=True)

    def _refuse_transaction(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        if schema_editor.connection.in_atomic_block:
            raise NotSupportedError(
                f"{self.index.name} cannot be built inside a transaction: set atomic = False on the migration."
            )

    def _exists(self, schema_editor: BaseDatabaseSchemaEditor, model: Any) -> bool:
        db = schema_editor.connection
        with db.cursor() as cursor:
            found = db.introspection.get_constraints(cursor, model._meta.db_table)
        return self.index.name in found


class RemoveIndexConcurrently(RemoveIndex):
    """Remove an index while others read and write: concurrently on PostgreSQL, and plainly elsewhere.

    The migration needs `atomic = False`, and may be repeated after an interruption.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._added(app_label, from_state).database_backwards(
            app_label, schema_editor, from_state, to_state
        )

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._added(app_label, to_state).database_forwards(
            app_label, schema_editor, from_state, to_state
        )

    def _added(self, app_label: str, state: Any) -> AddIndexConcurrently:
        """Return the operation that adds the index."""
        model = state.models[app_label, self.model_name_lower]
        index = model.get_index_by_name(self.name)
        return AddIndexConcurrently(self.model_name, index)
