"""Inquiries at the help desk, for tests that need some."""

from typing import Any

from orchestrator import start_process
from orchestrator.models import ProcessInstance
from orchestrator.testing import run
from tests.apps.every_construct.processes import Inquiry


def inquiry(ticket: str = "T-1", **more: Any) -> ProcessInstance:
    """Start an inquiry, and have it go as far as it goes by itself."""
    receipt = start_process(Inquiry, Inquiry.Input(ticket, **more))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)
