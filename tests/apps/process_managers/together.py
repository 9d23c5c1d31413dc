"""Doing several things at the same moment, each in a thread with a database connection of its own."""

from collections.abc import Callable, Sequence
from threading import Barrier, Thread
from typing import Any

from django.db import connections


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls at once; return what each returned or raised, in their order."""
    results: list[Any] = [None] * len(calls)
    barrier = Barrier(len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            results[place] = call()
        except Exception as error:  # noqa: BLE001  the test looks at it
            results[place] = error
        finally:
            connections.close_all()

    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def raised(results: Sequence[Any]) -> list[Exception]:
    """Return the errors among the results."""
    return [result for result in results if isinstance(result, Exception)]
