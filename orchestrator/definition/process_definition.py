"""What definitions of both kinds have in common: a name, a version, a queue, events, and a business key."""

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
"""The queue of whatever names none; what RQ calls it the settings say."""


class ProcessDefinition:
    """A process manager or a workflow as it is written in the code."""

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    queue: ClassVar[str] = DEFAULT_QUEUE
    correlation: ClassVar[str] = ""
    outside_ids: ClassVar[Sequence[str]] = ()
    patience: ClassVar[timedelta | None] = None
    retention: ClassVar[timedelta | None] = None
    repair_needs_approval: ClassVar[bool] = False
    """Whether a repair that one person proposes is applied by another."""

    migrations: ClassVar[Sequence[MigratesFrom]] = ()
    """How processes come over from other versions; of one that is not among them steps of the same name do."""

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
        """The business key in a message, in data or in an input, as text; "" when it carries none."""
        value = getattr(message, cls.correlation, "") if cls.correlation else ""
        return "" if value is None else str(value)

    @classmethod
    def secrets(cls) -> Secrets:
        """Which of its fields are secret."""
        return NONE

    @classmethod
    def migration_from(cls, version: int) -> MigratesFrom:
        """How processes come over from another version: as is declared, else by the names of their steps."""
        # Those of another version are its own.
        declared = vars(cls).get("migrations", ())
        said = (row for row in declared if row.version == version)
        return next(said, MigratesFrom(version))

    @staticmethod
    def summary(state: Any, /) -> str:
        """One line in business terms for lists, of the data or the input; override it. 200 characters are kept."""
        return ""

    @classmethod
    def _declared_name(cls) -> str:
        """The name that the class gives itself, else one made from the class's own."""
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        return vars(cls).get("name") or kebab
