"""Makes the help desk known to this process for a module of tests."""

from tests.apps.every_construct import processes
from tests.services.crews import knowing

__all__ = ["helpdesk"]


helpdesk = knowing(
    processes.Inquiry, processes.Billing, processes.Lattice, autouse=False
)
