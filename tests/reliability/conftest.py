"""The fixtures that only the tests of this folder share."""

from tests.apps.process_managers.fixtures import (
    handler,
    parcels,
    stored_definitions_are_forgotten,
    the_doorbell_is_in_reach,
)
from tests.services.exchange import exchange

__all__ = [
    "exchange",
    "handler",
    "parcels",
    "stored_definitions_are_forgotten",
    "the_doorbell_is_in_reach",
]
