"""System checks of definitions, handlers and limits.

`settings_checks` has those of the settings, `field_checks` those of single fields.

E001 a command has no handler; E002 it has two; E003 two definitions share name and version; E004 two event classes
share a name; E005 a definition changed under the same version while instances live on it; E008 a row has a command in
its commit after a command that runs later; E018 a subject names no model, or no unique field of it; W005 no app brings
a definition; W006 a definition is gone while processes live on it; W008 a definition with a subject has no correlation
field; W010 through a pooler, nothing limits how long a statement may wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags
from django.db import DatabaseError, connections

from orchestrator import registry
from orchestrator.checking.field_checks import field_errors
from orchestrator.checking.renamed_graphs import is_renamed
from orchestrator.checking.upgrades import gone_definitions
from orchestrator.configuration.environment import POSTGRES_LIMITS
from orchestrator.definition import Event, ProcessManager
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.messages import claimed, renamed
from orchestrator.exceptions import InvalidDefinition
from orchestrator.models import Definition, ProcessInstance


def register_checks() -> None:
    """Register the checks."""
    checks.register(check_definitions, "orchestrator")
    checks.register(check_fingerprints, Tags.database)
    checks.register(check_limits, Tags.database)


def check_definitions(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [
        *_handler_errors(),
        *_order_errors(),
        *_duplicates(),
        *_event_duplicates(),
        *_unregistered(),
        *_subject_mistakes(),
        *field_errors(),
    ]


def _handler_errors() -> Iterator[CheckMessage]:
    for definition in registry.process_managers():
        for name in sorted(definition.issued_commands()):
            found = registry.command_handlers.get(name, [])
            if not found:
                yield Error(
                    f"{definition.__name__} issues {name}, which has no handler.",
                    hint=f"Write a function with @handles({name}) in the app's handlers.py.",
                    obj=definition,
                    id="orchestrator.E001",
                )
            elif len(found) > 1:
                yield Error(
                    f"{name} has {len(found)} handlers: "
                    + ", ".join(handler.name for handler in found),
                    hint="A command has exactly one handler; use events to tell several.",
                    obj=definition,
                    id="orchestrator.E002",
                )


def _order_errors() -> Iterator[CheckMessage]:
    """Commands run in the order written: one that runs after the commit cannot precede one that runs in it."""
    for definition in registry.process_managers():
        for row in definition.all_rows():
            if pair := _wrong_order(row):
                later, earlier = pair
                yield Error(
                    f"{definition.__name__}, row {str(row)!r}: {earlier} runs in the commit, but {later}, "
                    "which is written before it, runs after the commit.",
                    hint=f"Write {earlier} first, or issue one of them with at_once=True if any order will do.",
                    obj=definition,
                    id="orchestrator.E008",
                )


def _wrong_order(row: TransitionRow) -> tuple[str, str] | None:
    """Return the first two commands of a row, in the order written, that cannot run in that order."""
    later = ""
    for issue in row.issues:
        handler = registry.command_handler(issue.command.__name__)
        if handler is None or issue.at_once:
            continue
        if handler.after_commit:
            later = later or issue.command.__name__
        elif later:
            return later, issue.command.__name__
    return None


def _duplicates() -> Iterator[CheckMessage]:
    for first, second in registry.duplicates:
        yield Error(
            f"{first.__module__}.{first.__name__} and {second.__module__}.{second.__name__} are both "
            f"{first.name} version {first.version}.",
            hint="Give one of them another name or version.",
            id="orchestrator.E003",
        )


def _event_duplicates() -> Iterator[CheckMessage]:
    known: dict[str, type[Event]] = {}
    for definition in registry.definitions.values():
        for name, event in definition.events.items():
            if known.setdefault(name, event) is not event:
                yield Error(
                    f"The event name {name} stands for {known[name].__module__} and {event.__module__}.",
                    hint="Import one class in both places, or rename one.",
                    obj=definition,
                    id="orchestrator.E004",
                )
    messages = known.keys() | registry.command_handlers.keys()
    for former, names in claimed.items():
        if len(twice := sorted(names & messages)) > 1:
            yield Error(
                f"The alias {former} is one of {' and '.join(twice)}.",
                hint="Leave it out of all classes but one.",
                id="orchestrator.E004",
            )
    for former in known.keys() & renamed.keys():
        if (current := renamed[former]) in known:
            yield Error(
                f"The event name {former} stands for {known[former].__module__} and, as an alias, for {current}.",
                hint="Leave the alias out, or rename the event.",
                obj=known[current],
                id="orchestrator.E004",
            )


def _unregistered() -> Iterator[CheckMessage]:
    for definition in registry.unregistered_definitions():
        place = f"{definition.__module__}.{definition.__qualname__}"
        app = apps.get_containing_app_config(definition.__module__)
        if app is None and definition not in registry.imported:
            continue  # of a library, whose business it is
        where = f"Import it in {app.name}.processes" if app else "Move it into an app"
        yield checks.Warning(
            f"{place} is a definition that no app's processes has brought: nothing can start it.",
            hint=f"{where}, or leave its rows out if it is only a base of others.",
            obj=definition,
            id="orchestrator.W005",
        )


def _subject_mistakes() -> Iterator[CheckMessage]:
    for definition in registry.definitions.values():
        if not definition.subject:
            continue
        said = f"{definition.__name__} has the subject {definition.subject!r}, but"
        try:
            registry.find_subject(definition)
        except InvalidDefinition as mistake:
            yield Error(
                f"{said} {mistake.reason.rstrip('.')}.",
                hint='Write "app.Model", or "app.Model.field" with a field that is unique.',
                obj=definition,
                id="orchestrator.E018",
            )
        if not definition.correlation:
            yield checks.Warning(
                f"{said} no correlation field: only start_process(..., correlation_key=...) gives its processes a key.",
                hint="Name in correlation the field that holds the object's key.",
                obj=definition,
                id="orchestrator.W008",
            )


def _is_fixed(definition: registry.DefinitionClass) -> bool:
    """Return whether all processes of a version have one graph, and not each a graph made from its input."""
    return issubclass(definition, ProcessManager) or definition.static is not None


def check_fingerprints(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    try:
        return [*_changed_definitions(), *_gone_definitions()] if databases else []
    except DatabaseError:
        return []  # not migrated yet


def _changed_definitions() -> Iterator[CheckMessage]:
    for definition in filter(_is_fixed, registry.definitions.values()):
        name, version = definition.name, definition.version
        rows = ProcessInstance.objects.live().filter(definition__name=name)
        of_version = rows.filter(definition__version=version)
        fingerprint = definition.graph().fingerprint()
        others = Definition.objects.filter(name=name, version=version)
        same = [
            row.pk
            for row in others.iterator()
            if row.fingerprint == fingerprint or is_renamed(row.graph, fingerprint)
        ]
        if live := of_version.exclude(definition__in=same).count():
            yield Error(
                f"{definition.__name__} has changed, but {live} live instances run on version {version} as it was.",
                hint="Raise its version and keep the old class until they have ended.",
                obj=definition,
                id="orchestrator.E005",
            )


def _gone_definitions() -> Iterator[CheckMessage]:
    for found in gone_definitions():
        yield checks.Warning(
            f"{found.what}.", hint=found.remedy, id="orchestrator.W006"
        )


def check_limits(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Through a pooler, a connection cannot set limits: those of the database role hold for web and workers alike."""
    return [
        checks.Warning(
            f"Nothing limits how long a transaction may hold up others in the database {alias}: {', '.join(missing)}.",
            hint=f"{_role_statements(missing)} as the role that connects through the pooler.",
            id="orchestrator.W010",
        )
        for alias in databases or ()
        if connections[alias].vendor == "postgresql"
        and connections[alias].settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
        and (missing := _missing_limits(alias))
    ]


def _missing_limits(alias: str) -> list[str]:
    question = "SELECT name FROM pg_settings WHERE setting = '0' AND name = ANY(%s)"
    with connections[alias].cursor() as cursor:
        cursor.execute(question, [list(POSTGRES_LIMITS)])
        return sorted(name for (name,) in cursor.fetchall())


def _role_statements(names: Sequence[str]) -> str:
    return "; ".join(
        f"ALTER ROLE CURRENT_USER SET {name} = {POSTGRES_LIMITS[name]}"
        for name in names
    )
