"""A machine that others keep busy: processes that only burn time."""

from functools import partial

from tests.services.burners import burners

busy = partial(burners, seconds=3_600)
"""Lets so many processes burn time as long as the block runs."""
