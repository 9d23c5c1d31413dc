"""The groups that open pages follow, so that no hint is sent without a page to read it.

A busy system commits hundreds of transitions a second, and pages show few of them. The subscriptions of the channel
layer tell which; `Watchers` reads them once a second. A page that opens in between fetches when it connects and once
more a moment later, so it misses nothing.
"""

import time
from typing import Any

from channels_redis.utils import create_pool, decode_hosts
from django.conf import settings
from redis.asyncio import Redis

ASK_EVERY = 1.0
"""Seconds between two questions. With an older answer every hint is sent, and the next one asks again."""


class Watchers:
    """The groups that pages listen to; every group counts as watched until they are known."""

    def __init__(self) -> None:
        self._groups: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._clients: list[Any] = []

    def may_include(self, group: str) -> bool:
        """Whether a page may listen to this group."""
        return group in self._groups or self._due

    @property
    def _due(self) -> bool:
        return time.monotonic() >= self._asked_at + ASK_EVERY

    async def ask(self) -> None:
        """Read the subscriptions again, when that is due and the layer has them."""
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
    """Ping each Redis of the channel layer, if it uses Redis, over a connection of its own.

    Raises:
        RedisError, OSError: a Redis cannot be reached.
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
