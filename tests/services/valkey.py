"""A Valkey server of the test run's own."""

import os
import time
from pathlib import Path

import redis

from orchestrator.configuration.environment import socket_url
from orchestrator.serving import valkey
from tests.services.patience import A_MINUTE


class ValkeyServer:
    """The embedded server as `up` starts it; it can be stopped, killed and started again."""

    def __init__(self, data_dir: Path, socket: Path) -> None:
        self.socket = socket
        self.url = socket_url(socket)
        self.child = valkey.server(
            data_dir, socket, data_dir / "valkey.log", dict(os.environ)
        )

    @property
    def running(self) -> bool:
        return self.child.alive and valkey.is_up(self.socket)

    def start(self) -> None:
        """Start the server if it is not running, and wait until it answers."""
        if self.child.alive:
            return
        self.child.start()
        deadline = time.monotonic() + A_MINUTE
        while not valkey.is_up(self.socket):
            if time.monotonic() > deadline:
                raise TimeoutError(self.child.log.read_text()[-1000:])
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server as `up` does."""
        self.child.ask_to_end()
        self.child.wait_until(time.monotonic() + A_MINUTE)

    def kill(self) -> None:
        """End the server without a chance to save."""
        self.child.wait_until(0)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=5)

    def forget_everything(self) -> None:
        with self.client() as client:
            client.flushall()
