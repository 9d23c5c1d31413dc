"""The statements of visits, which are claimed in turns where more are due than one claim takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from django.db import connection

from orchestrator.engine.sql.batch import NOW, database_now
from orchestrator.engine.sql.row_statements import Condition
from orchestrator.engine.sql.table import Table
from orchestrator.models import StepRun, StepStatus

UNCLAIMED = "owner = '' AND wake_at IS NOT NULL"
"""The condition of the index by definition, word by word: else SQLite does not use the index."""

STATUSES = (
    StepStatus.READY,
    StepStatus.WAITING,
    StepStatus.RETRYING,
    StepStatus.FAILED,
)
"""The statuses of unclaimed due visits: under way, asleep until a moment, tried again, or failed with a sub-process.

The last looks at the sub-process, which goes on.
"""


class Turn(NamedTuple):
    """The due visits of one definition with one status.

    Args:
        definition: the definition's name; "" for visits that earlier releases have made.
        status: the status.
    """

    definition: str
    status: str


class StepTable(Table[StepRun]):
    """The statements of the visits."""

    def __init__(self) -> None:
        super().__init__(StepRun)

    def due_turns(self, queue: str) -> list[Turn]:
        """Return the turns of a queue, by a few index lookups for each definition with waiting visits."""
        params = [queue] * 3 + self._now()
        # Not prepared: PostgreSQL would cache the plan of a small table.
        with connection.cursor() as cursor:
            cursor.execute(self._due_turns(connection.vendor), params)
            return [Turn(*row) for row in cursor.fetchall()]

    def in_turns(
        self,
        queue: str,
        shares: Sequence[tuple[Turn, int]],
        limit: int,
        which: Condition,
    ) -> Condition:
        """Return the condition of the visits that a claim in turns takes.

        Args:
            queue: the queue.
            shares: the turns, each with the most visits that it gives, the oldest first.
            limit: the most visits in all; the oldest due visits of all turns fill what the shares leave.
            which: a further condition on the visits.
        """
        now, params = self._now(), list[Any]()
        for turn, most in shares:
            params += [queue, *turn, *now, *which.params, most]
        params += [queue, *now, *which.params, limit, limit]
        sql = self._in_turns(connection.vendor, len(shares), which.sql)
        return Condition(sql, tuple(params))

    def _now(self) -> list[Any]:
        """The parameters of a comparison with the time."""
        if connection.vendor == "postgresql":
            return []
        return [connection.ops.adapt_datetimefield_value(database_now())]

    @cache  # noqa: B019  # there is one, for the life of the process
    def _due_turns(self, vendor: str) -> str:
        # Not EXISTS: PostgreSQL would make a join of it, and read all due rows.
        now = NOW if vendor == "postgresql" else "%s"
        names = f"SELECT definition FROM {self.name} WHERE queue = %s AND {UNCLAIMED}"  # noqa: S608  # names are the model's
        kinds = " UNION ALL ".join(
            f"SELECT '{status}' AS status" for status in STATUSES
        )
        return f"""
            WITH RECURSIVE found(name) AS (
                SELECT * FROM ({names} ORDER BY definition LIMIT 1) AS first
                UNION ALL
                SELECT ({names} AND definition > found.name ORDER BY definition LIMIT 1)
                FROM found WHERE found.name IS NOT NULL
            )
            SELECT name, kinds.status FROM found, ({kinds}) AS kinds
            WHERE name IS NOT NULL AND (
                SELECT id FROM {self.name} AS due WHERE queue = %s AND {UNCLAIMED}
                AND definition = name AND due.status = kinds.status AND wake_at <= {now}
                ORDER BY wake_at LIMIT 1
            ) IS NOT NULL
        """  # noqa: S608  # names are the model's

    @cache  # noqa: B019  # there is one, for the life of the process
    def _in_turns(self, vendor: str, number: int, which: str) -> str:
        postgresql = vendor == "postgresql"
        due = f"wake_at <= {NOW if postgresql else '%s'}{which}"
        lock = " FOR UPDATE SKIP LOCKED" if postgresql else ""
        oldest = f"ORDER BY wake_at, id LIMIT %s{lock}"
        rows = f"SELECT id, wake_at FROM {self.name} WHERE queue = %s"  # noqa: S608  # names are the model's
        turn = f"{rows} AND definition = %s AND status = %s AND {UNCLAIMED} AND {due} {oldest}"
        parts = [f"SELECT 0 AS late, id, wake_at FROM ({turn}) AS turn"] * number  # noqa: S608  # names are the model's
        rest = f"SELECT 1 AS late, id, wake_at FROM ({rows} AND {due} {oldest}) AS rest"  # noqa: S608  # names are the model's
        found = (
            f"SELECT id FROM ({' UNION ALL '.join([*parts, rest])}) AS found"  # noqa: S608  # names are the model's
            " GROUP BY id, wake_at ORDER BY MIN(late), wake_at, id LIMIT %s"
        )
        # As an array, for the reason that `_claim` gives.
        return (
            f" AND id = ANY(ARRAY({found}))" if postgresql else f" AND id IN ({found})"
        )
