"""Sending from several sides at once, each in its own order, with a connection to the database of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from django.db import connection

Sending = Callable[[], object]


class Senders:
    """One thread for each stream of what is to be sent.

    Args:
        streams: what each sender sends, in its order, as fast as it can.
    """

    def __init__(self, *streams: Iterable[Sending]) -> None:
        self.failures: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self._send, args=(stream,)) for stream in streams
        ]

    def _send(self, stream: Iterable[Sending]) -> None:
        try:
            for send in stream:
                send()
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.failures.append(error)
        finally:
            connection.close()

    def send_all(self) -> None:
        """Send everything; nothing may be refused."""
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        assert self.failures == []
