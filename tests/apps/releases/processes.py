"""The release that this program runs: what the environment says."""

import os
from importlib import import_module

from orchestrator import handles
from orchestrator.definition import Command

RELEASE = "RELEASE_OF_ORDERS"

code = import_module(f"tests.apps.releases.{os.environ.get(RELEASE, 'before')}")
Order, Packing = code.Order, code.Packing


@handles(code.Ship, after_commit=True)
def ship(command: Command) -> None:
    """Does nothing."""
