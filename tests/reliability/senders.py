"""Sending from several sides at once, each in its own order, with a connection to the database of its own."""

from collections.abc import Callable, Iterable
from functools import partial

from tests.apps.process_managers.together import raised, together

Sending = Callable[[], object]


def send_all(*streams: Iterable[Sending]) -> None:
    """Send what each stream has, in its order, as fast as it can; nothing may be refused."""
    assert raised(together(*(partial(_sent, stream) for stream in streams))) == []


def _sent(stream: Iterable[Sending]) -> None:
    for send in stream:
        send()
