"""The time of a session, told by the database and carried on here, so that no visit has to ask for it."""

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """The database's time, told once and carried on by this process's own clock."""

    def __init__(self, now: datetime | None = None) -> None:
        self._told, self._at = now or datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        return self._told + timedelta(seconds=time.monotonic() - self._at)
