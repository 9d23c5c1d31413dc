"""The base of both kinds of definitions: name, version, queue, events and business key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from orchestrator.definition.messages import Event
from orchestrator.definition.migrating import MigratesFrom
from orchestrator.definition.secrets import NONE, Secrets

COMMON = (
    "name",
    "version",
    "queue",
    "correlation",
    "outside_ids",
    "patience",
    "retention",
    "summary",
    "repair_needs_approval",
    "migrations",
)
"""The attributes that a definition of either kind may have."""

DEFAULT_QUEUE = "default"
"""The queue of definitions that name none. The settings map it to a queue of RQ."""


class ProcessDefinition:
    """A process manager or a workflow in the code."""

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    queue: ClassVar[str] = DEFAULT_QUEUE
    correlation: ClassVar[str] = ""
    outside_ids: ClassVar[Sequence[str]] = ()
    patience: ClassVar[timedelta | None] = None
    retention: ClassVar[timedelta | None] = None
    repair_needs_approval: ClassVar[bool] = False
    """Whether a second person must approve a repair."""

    migrations: ClassVar[Sequence[MigratesFrom]] = ()
    """Migrations from other versions. Without one, steps of the same name correspond."""

    kind: ClassVar[str]
    events: ClassVar[Mapping[str, type[Event]]] = {}

    @classmethod
    def can_handle(cls, event: Event) -> bool:
        """Whether any row of the definition is for such an event."""
        return type(event).__name__ in cls.events

    @classmethod
    def starting_events(cls) -> frozenset[str]:
        """The names of the events that can start a process; none for a workflow, which is started with its input."""
        return frozenset()

    @classmethod
    def correlation_key(cls, message: object) -> str:
        """The business key in a message, data or input, as text; "" without one."""
        value = getattr(message, cls.correlation, "") if cls.correlation else ""
        return "" if value is None else str(value)

    @classmethod
    def secrets(cls) -> Secrets:
        """The secret fields."""
        return NONE

    @classmethod
    def migration_from(cls, version: int) -> MigratesFrom:
        """The migration from another version: the declared one, else by the names of the steps."""
        # Migrations of a base class belong to its own version.
        declared = vars(cls).get("migrations", ())
        said = (row for row in declared if row.version == version)
        return next(said, MigratesFrom(version))

    @staticmethod
    def summary(state: Any, /) -> str:
        """One line in business terms for lists, of the data or the input; override it. 200 characters are kept."""
        return ""

    @classmethod
    def _declared_name(cls) -> str:
        """The declared name, else one made from the name of the class."""
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        return vars(cls).get("name") or kebab
