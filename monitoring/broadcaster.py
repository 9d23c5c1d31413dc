"""Sends committed changes to open pages: one thread, one event loop, one connection to the channel layer.

The thread that commits only puts a hint into a bounded table, newest for each subject, and goes on. What is sent is a
hint without payload; a lost one is made good by the pages themselves, which ask again every ten seconds.
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

from monitoring.watchers import Watchers
from orchestrator.signals import Change

logger = logging.getLogger(__name__)

KEPT = 5_000
"""Subjects with an unsent hint; beyond them the oldest hint is dropped."""

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
"""Edges that a hint names; of more, pages learn with what they fetch."""

SEND_TIMEOUT = 2.0
"""Seconds after which a send is given up."""

COMPLAIN_EVERY = 30.0
"""Seconds between two log lines about a channel layer that cannot be reached."""

Hint = dict[str, Any]


class Broadcaster:
    """Coalesces hints and sends them from a thread of its own, which starts with the first hint."""

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
        """Leaves hints about a change to be sent; returns at once."""
        groups = [group for group in groups_of(change) if self._watchers.hear(group)]
        if not groups:
            return
        message = {"type": "live.change", **as_hint(change)}
        with self._changed:
            new = False
            for group in groups:
                new = new or group not in self._waiting
                self._waiting[group] = merged(self._waiting.get(group), message)
                while len(self._waiting) > KEPT:
                    self._waiting.popitem(last=False)
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="broadcaster", daemon=True)
                self._thread.start()
            if new:  # a group that already waits has its time
                self._changed.notify_all()

    def flush(self, timeout: float = 0.5) -> bool:
        """Waits until all hints are sent, at most `timeout` seconds; whether they were."""
        with self._changed:
            idle = self._changed.wait_for(
                lambda: not self._waiting and not self._busy, timeout
            )
        return bool(idle)

    def end(self) -> None:
        """Sends what it can in half a second; what it cannot is told to nobody, since logs may be closed by now."""
        self._ending = True
        self.flush()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                due = self._take()
                try:
                    runner.run(asyncio.wait_for(self._send(due), SEND_TIMEOUT))
                except Exception as error:  # noqa: BLE001  the layer is away; pages ask
                    self._complain(error)
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _take(self) -> list[tuple[str, Hint]]:
        """Blocks until hints are due, and takes them."""
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
                if PAUSE[kind(group)]:
                    self._sent_at[group] = now
            return [(group, self._waiting.pop(group)) for group in due]

    def _due_at(self, group: str) -> float:
        return self._sent_at.get(group, 0.0) + PAUSE[kind(group)]

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


def as_hint(change: Change) -> Hint:
    """What a page is told about a change."""
    return {
        "id": str(change.process_id) if change.process_id else "",
        "name": change.name,
        "revision": change.revision,
        "status": str(change.status),
        "steps": {node: str(status) for node, status in change.steps.items()},
        "edges": [edge for edge in change.edge.split(",", EDGES)[:EDGES] if edge],
        "at": change.at,
    }


def merged(older: Hint | None, newer: Hint) -> Hint:
    """One hint for two about the same instance: nothing of the path is lost when only one of them is sent."""
    if older is None or not newer.get("id") or older.get("id") != newer["id"]:
        return newer
    if older["revision"] > newer["revision"]:
        older, newer = newer, older
    steps = {**older["steps"], **newer["steps"]}
    edges = [*older["edges"], *newer["edges"]][-EDGES:]
    return {**newer, "steps": steps, "edges": edges}


def groups_of(change: Change) -> list[str]:
    """The groups that hear of a change."""
    if change.bulk is not None:
        return ["bulk", f"operation.{change.bulk.hex}"]
    groups = ["overview" if change.name else "events"]
    if change.process_id is not None:
        groups.append(f"instance.{change.process_id.hex}")
    if change.name:
        groups.append(f"definition.{change.name}")
    return groups


def kind(group: str) -> str:
    return group.partition(".")[0]


_broadcasters: dict[int, Broadcaster] = {}


def broadcast(change: Change, **_: object) -> None:
    """Receives `orchestrator.signals.committed`; never raises into the code that committed."""
    try:
        broadcaster().put(change)
    except Exception:
        logger.exception("A change could not be announced")


def broadcaster() -> Broadcaster:
    """The broadcaster of this process; a fork starts with one of its own."""
    pid = os.getpid()
    if pid not in _broadcasters:
        _broadcasters[pid] = Broadcaster()
        atexit.register(_broadcasters[pid].end)
    return _broadcasters[pid]
