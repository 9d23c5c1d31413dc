"""Sends committed changes to open pages: one thread, one event loop, one connection to the channel layer.

The thread that commits puts a hint into a bounded table, which keeps the newest for each subject, and goes on. A hint
has no data. Pages that miss one ask again within ten seconds.
"""

import asyncio
import atexit
import logging
import os
import time
from collections import OrderedDict
from threading import Condition, Thread
from typing import Any

from channels.layers import get_channel_layer

from monitoring.live.watchers import Watchers
from orchestrator.signals import Change

logger = logging.getLogger(__name__)

KEPT = 5_000
"""Subjects with an unsent hint; above this number the oldest hint is dropped."""

PAUSE = {
    "instance": 0.0,
    "definition": 0.05,
    "overview": 0.05,
    "events": 0.05,
    "bulk": 0.1,
    "operation": 0.1,
}
"""Seconds between two hints to the same group, by kind of group."""

EDGES = 100
"""Edges that a hint names at most; pages fetch the others."""

SEND_TIMEOUT = 2.0
"""Seconds after which a send fails."""

COMPLAIN_EVERY = 30.0
"""Seconds between two log lines about an unreachable channel layer."""

Hint = dict[str, Any]


class Broadcaster:
    """Merges hints and sends them from its own thread, which starts with the first hint."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Hint] = OrderedDict()
        self._changed = Condition()
        self._sent_at: dict[str, float] = {}
        self._thread: Thread | None = None
        self._watchers = Watchers()
        self._busy = False
        self._complained = 0.0
        self._ending = False

    def put(self, change: Change) -> None:
        """Queue the hints about a change, and return at once."""
        groups = [
            group for group in hint_groups(change) if self._watchers.may_include(group)
        ]
        if not groups:
            return
        message = {"type": "live.change", **change_hint(change)}
        with self._changed:
            new = False
            for group in groups:
                new = new or group not in self._waiting
                self._waiting[group] = merge_hints(self._waiting.get(group), message)
                while len(self._waiting) > KEPT:
                    self._waiting.popitem(last=False)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="broadcaster", daemon=True)
                self._thread.start()
            if new:  # a group that waits already has its time
                self._changed.notify_all()

    def flush(self, timeout: float = 0.5) -> bool:
        """Wait at most `timeout` seconds until all hints are sent; return whether they are."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._busy, timeout
            )

    def end(self) -> None:
        """Send hints for half a second. Failures are not logged, since logs may be closed by now."""
        self._ending = True
        self.flush()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                due = self._take()
                try:
                    runner.run(asyncio.wait_for(self._send(due), SEND_TIMEOUT))
                except Exception as error:  # noqa: BLE001  the layer is down; pages ask
                    self._complain(error)
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _take(self) -> list[tuple[str, Hint]]:
        """Wait until hints are due, and remove them from the table."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = [group for group in self._waiting if self._due_at(group) <= now]
                if due:
                    break
                soonest = min(map(self._due_at, self._waiting), default=None)
                self._changed.wait(None if soonest is None else soonest - now)
            self._busy = True
            for group in due:
                if PAUSE[group_kind(group)]:
                    self._sent_at[group] = now
            return [(group, self._waiting.pop(group)) for group in due]

    def _due_at(self, group: str) -> float:
        return self._sent_at.get(group, 0.0) + PAUSE[group_kind(group)]

    async def _send(self, due: list[tuple[str, Hint]]) -> None:
        await self._watchers.ask()
        layer = get_channel_layer()
        if layer is not None:
            for group, message in due:
                await layer.group_send(group, {**message, "group": group})

    def _complain(self, error: Exception) -> None:
        if self._ending:
            return
        if time.monotonic() - self._complained > COMPLAIN_EVERY:
            self._complained = time.monotonic()
            logger.warning("Open pages are not told of changes just now: %r", error)


def change_hint(change: Change) -> Hint:
    """Return the hint about a change."""
    return {
        "id": str(change.process_id) if change.process_id else "",
        "name": change.name,
        "revision": change.revision,
        "status": str(change.status),
        "steps": {node: str(status) for node, status in change.steps.items()},
        "edges": [edge for edge in change.edge.split(",", EDGES)[:EDGES] if edge],
        "at": change.at,
    }


def merge_hints(older: Hint | None, newer: Hint) -> Hint:
    """Return one hint for two about the same process, with the steps and edges of both."""
    if older is None or not newer.get("id") or older.get("id") != newer["id"]:
        return newer
    if older["revision"] > newer["revision"]:
        older, newer = newer, older
    steps = {**older["steps"], **newer["steps"]}
    edges = [*older["edges"], *newer["edges"]][-EDGES:]
    return {**newer, "steps": steps, "edges": edges}


def hint_groups(change: Change) -> list[str]:
    """Return the groups that get the hint about a change."""
    if change.bulk is not None:
        return ["bulk", f"operation.{change.bulk.hex}"]
    groups = ["overview" if change.name else "events"]
    if change.process_id is not None:
        groups.append(f"instance.{change.process_id.hex}")
    if change.name:
        groups.append(f"definition.{change.name}")
    return groups


def group_kind(group: str) -> str:
    return group.partition(".")[0]


_broadcasters: dict[int, Broadcaster] = {}


def broadcast(change: Change, **_: object) -> None:
    """Receive `orchestrator.signals.committed`. It never raises, since the sender has committed."""
    try:
        broadcaster().put(change)
    except Exception:
        logger.exception("A change could not be announced")


def broadcaster() -> Broadcaster:
    """Return the broadcaster of this process; a fork starts with one of its own."""
    pid = os.getpid()
    if pid not in _broadcasters:
        _broadcasters[pid] = Broadcaster()
        atexit.register(_broadcasters[pid].end)
    return _broadcasters[pid]
