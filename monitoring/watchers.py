"""What open pages follow, so that no hint is sent that nobody would hear.

A busy system commits hundreds of transitions a second, and few of them are looked at. The channel layer's own
subscriptions say which; they are asked once a second. A page that opens in between fetches when it connects and once
more a moment later, so it misses nothing.
"""

import time
from typing import Any

from channels_redis.utils import create_pool, decode_hosts
from django.conf import settings
from redis.asyncio import Redis

ASK_EVERY = 1.0
"""Seconds between two questions. An older answer leaves no hint unsent; the next one that is sent asks again."""


class Watchers:
    """The groups that somebody listens to; everything counts as watched while that is not known."""

    def __init__(self) -> None:
        self._groups: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._clients: list[Any] = []

    def hear(self, group: str) -> bool:
        """Whether a hint for this group may be heard."""
        return group in self._groups or self._due

    @property
    def _due(self) -> bool:
        return time.monotonic() >= self._asked_at + ASK_EVERY

    async def ask(self) -> None:
        """Looks again, when that is due and the layer is one that can be asked."""
        if not self._due or not _on_redis():
            return
        config = _layer().get("CONFIG", {})
        if not self._clients:
            self._clients = _clients()
        marker = f"{config.get('prefix', 'asgi')}__group__"
        found = [
            channel.decode().removeprefix(marker)
            for client in self._clients
            for channel in await client.pubsub_channels(f"{marker}*")
        ]
        self._groups, self._asked_at = frozenset(found), time.monotonic()


async def layer_answers() -> None:
    """Asks each Redis of the channel layer, if it is on any, over a connection of its own.

    Raises:
        RedisError, OSError: one is out of reach.
    """
    for client in _clients() if _on_redis() else []:
        try:
            await client.ping()
        finally:
            await client.aclose(close_connection_pool=True)


def _clients() -> list[Any]:
    hosts = decode_hosts(_layer().get("CONFIG", {}).get("hosts"))
    return [Redis(connection_pool=create_pool(host)) for host in hosts]


def _on_redis() -> bool:
    backend = str(_layer()["BACKEND"])
    return backend.endswith("pubsub.RedisPubSubChannelLayer")


def _layer() -> dict[str, Any]:
    return settings.CHANNEL_LAYERS["default"]
