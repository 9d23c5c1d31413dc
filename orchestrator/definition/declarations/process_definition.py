"""The base of both kinds of definitions: name, version, queue, events and business key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal

from orchestrator.definition.declarations.migrating import MigratesFrom
from orchestrator.definition.messages import Event
from orchestrator.definition.secrets import NONE, Secrets

COMMON = (
    "name",
    "version",
    "queue",
    "correlation",
    "subject",
    "outside_ids",
    "patience",
    "missing",
    "retention",
    "summary",
    "repair_needs_approval",
    "migrations",
)
"""The attributes that a definition of either kind may have."""

IN_ROWS = {
    "deadline": "it stands in the rows, as after(...) or wait(..., deadline=...)",
    "deadlines": "they stand in the rows, as after(...) or wait(..., deadline=...)",
    "retries": "write step(function, retries=...) or @handles(..., attempts=...)",
    "attempts": "write step(function, retries=...) or @handles(..., attempts=...)",
    "timeout": "write step(function, timeout=...) or @handles(..., timeout=...)",
    "backoff": "write step(function, backoff=...)",
}
"""The words of rows, steps and handlers that a class does not have, and where they stand."""

DEFAULT_QUEUE = "default"
"""The queue of definitions that name none. The settings map it to a queue of RQ."""


class ProcessDefinition:
    """A process manager or a workflow, declared as a class."""

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    queue: ClassVar[str] = DEFAULT_QUEUE
    correlation: ClassVar[str] = ""
    subject: ClassVar[str] = ""
    """The application's model, and its unique field, whose value is the correlation key: "shop.Order.number".

    Without a field it is the primary key.
    """

    outside_ids: ClassVar[Sequence[str]] = ()
    patience: ClassVar[timedelta | None] = None
    missing: ClassVar[Literal["ignore", "park"]] = "park"
    """The handling of an event whose correlation key no process has, and that starts none: it is ignored, or kept."""

    retention: ClassVar[timedelta | None] = None
    repair_needs_approval: ClassVar[bool] = False
    """Whether a second person must approve a repair."""

    migrations: ClassVar[Sequence[MigratesFrom]] = ()
    """Migrations from other versions. Without one, steps of the same name correspond."""

    kind: ClassVar[str]
    events: ClassVar[Mapping[str, type[Event]]] = {}

    @classmethod
    def can_handle(cls, event: Event) -> bool:
        """Return whether the definition has a row for this type of event."""
        return type(event).__name__ in cls.events

    @classmethod
    def starting_events(cls) -> frozenset[str]:
        """Return the names of the events that can start a process; none for a workflow, which starts with an input."""
        return frozenset()

    @classmethod
    def correlation_key(cls, message: object) -> str:
        """Return the business key in a message, data or input, as text; "" without one."""
        value = getattr(message, cls.correlation, "") if cls.correlation else ""
        return "" if value is None else str(value)

    @classmethod
    def secrets(cls) -> Secrets:
        """Return the secret fields."""
        return NONE

    @classmethod
    def migration_from(cls, version: int) -> MigratesFrom:
        """Return the migration from another version: the declared one, else one by the names of the steps."""
        # Migrations of a base class belong to the version of the base class.
        declared = vars(cls).get("migrations", ())
        said = (row for row in declared if row.version == version)
        return next(said, MigratesFrom(version))

    @staticmethod
    def summary(state: Any, /) -> str:
        """Return one line in business terms for lists. Override it; the engine stores 200 characters.

        Args:
            state: the data or the input.
        """
        return ""

    @classmethod
    def _declared_name(cls) -> str:
        """The declared name, else one made from the name of the class."""
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        return vars(cls).get("name") or kebab


def inherited_rows(cls: type[ProcessDefinition], rows: str) -> Iterator[str]:
    """Yield why a class without rows of its own cannot be, if one of its bases has rows.

    Args:
        cls: the class.
        rows: the attribute that has the rows.
    """
    for base in cls.__mro__[1:]:
        if rows in vars(base):
            yield (
                f"it has no {rows} of its own, and {base.__name__} has: it would be {base.__name__} itself. "
                f"Write {rows} = {base.__name__}.{rows} to have the same, under its own name"
            )
            return
