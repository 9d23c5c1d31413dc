"""System checks: what only the whole project can know. Those of its settings are in `settings_checks`.

E001 a command has no handler; E002 it has two; E003 two definitions share name and version; E004 two event classes
share a name; E005 a definition changed under the same version while instances live on it; E008 a row has a command
carried out in its commit that comes after one that is carried out later; W010 through a pooler, nothing limits how long
a statement may wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, Error, Tags
from django.db import DatabaseError, connections

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager
from orchestrator.definition.process_manager.rows import TransitionRow
from orchestrator.environment import POSTGRES_LIMITS
from orchestrator.models import ProcessInstance


def connect() -> None:
    """Registers the checks."""
    checks.register(check_definitions, "orchestrator")
    checks.register(check_fingerprints, Tags.database)
    checks.register(check_limits, Tags.database)


def check_definitions(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [*_handlers(), *_command_order(), *_names(), *_event_names()]


def _handlers() -> Iterator[CheckMessage]:
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


def _command_order() -> Iterator[CheckMessage]:
    """Commands are carried out in the order written: what waits for the commit cannot come before what is in it."""
    for definition in registry.process_managers():
        for row in definition.all_rows():
            if pair := _wrong_order(row):
                later, earlier = pair
                yield Error(
                    f"{definition.__name__}, row {str(row)!r}: {earlier} is carried out in the commit, and {later}, "
                    "which is written before it, after that.",
                    hint=f"Write {earlier} first, or issue one of them with at_once=True if their order is all one.",
                    obj=definition,
                    id="orchestrator.E008",
                )


def _wrong_order(row: TransitionRow) -> tuple[str, str] | None:
    """The first two of a row's commands, in the order written, that cannot be carried out in it."""
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


def _names() -> Iterator[CheckMessage]:
    for first, second in registry.twins:
        yield Error(
            f"{first.__module__}.{first.__name__} and {second.__module__}.{second.__name__} are both "
            f"{first.name} version {first.version}.",
            hint="Give one of them another name or version.",
            id="orchestrator.E003",
        )


def _event_names() -> Iterator[CheckMessage]:
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


def _is_fixed(definition: registry.Declared) -> bool:
    """Whether all processes of a version have one graph; one that is made from the input has none to compare."""
    return issubclass(definition, ProcessManager) or definition.static is not None


def check_fingerprints(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    try:
        return list(_changed()) if databases else []
    except DatabaseError:
        return []  # not migrated yet


def _changed() -> Iterator[CheckMessage]:
    for definition in filter(_is_fixed, registry.definitions.values()):
        name, version = definition.name, definition.version
        rows = ProcessInstance.objects.live().filter(definition__name=name)
        of_version = rows.filter(definition__version=version)
        fingerprint = definition.graph().fingerprint()
        if live := of_version.exclude(definition__fingerprint=fingerprint).count():
            yield Error(
                f"{definition.__name__} has changed, but {live} live instances run on version {version} as it was.",
                hint="Raise its version and keep the old class until they have ended.",
                obj=definition,
                id="orchestrator.E005",
            )


def check_limits(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Through a pooler connections cannot bring limits with them; those of the role hold for web and workers alike."""
    return [
        checks.Warning(
            f"Nothing limits how long a transaction may hold up others in the database {alias}: {', '.join(missing)}.",
            hint=f"{_as_role(missing)} as the role that connects through the pooler.",
            id="orchestrator.W010",
        )
        for alias in databases or ()
        if connections[alias].vendor == "postgresql"
        and connections[alias].settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
        and (missing := _without_limit(alias))
    ]


def _without_limit(alias: str) -> list[str]:
    question = "SELECT name FROM pg_settings WHERE setting = '0' AND name = ANY(%s)"
    with connections[alias].cursor() as cursor:
        cursor.execute(question, [list(POSTGRES_LIMITS)])
        return sorted(name for (name,) in cursor.fetchall())


def _as_role(names: Sequence[str]) -> str:
    return "; ".join(
        f"ALTER ROLE CURRENT_USER SET {name} = {POSTGRES_LIMITS[name]}"
        for name in names
    )
