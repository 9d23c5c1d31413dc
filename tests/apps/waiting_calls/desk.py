"""Starting processes whose calls wait, and waiting for what becomes of them."""

from collections.abc import Callable
from typing import Any

from orchestrator import start_process
from orchestrator.models import ProcessInstance, StepRun
from tests.services.patience import wait_for
from tests.services.workers import Workers, said


def started(definition: Any, *given: Any) -> ProcessInstance:
    receipt = start_process(definition, definition.Input(*given))
    return ProcessInstance.objects.get(pk=receipt.process_id)


def until(ready: Callable[[], bool], workers: Workers) -> None:
    wait_for(ready, 30, lambda: f"{list(StepRun.objects.values())}{said(workers)}")


def all_ended() -> bool:
    return not ProcessInstance.objects.filter(finished_at=None).exists()
