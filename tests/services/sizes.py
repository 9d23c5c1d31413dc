"""How much a test does: as much as shows the thing, or with `manage.py test --full` the most that is promised."""

import os

FULL = bool(os.environ.get("PROCESSION_TESTS_FULL"))


def size(usual: int, full: int) -> int:
    """Return how many things a test is to take.

    Args:
        usual: as few as show that it holds.
        full: as many as it must hold for.
    """
    return full if FULL else usual
