"""Starts workflows and runs what is ready; the engine runs in this process."""

from typing import Any

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.models import Incident, ProcessInstance, StepKind, StepRun
from orchestrator.testing import pass_time, run


def launch(definition: type[Workflow], *given: Any, id: str = "") -> ProcessInstance:
    """Start a process with these fields of its input; nothing has run yet."""
    receipt = start_process(definition, definition.Input(*given), id=id)
    return ProcessInstance.objects.get(pk=receipt.process_id)


def finished(definition: type[Workflow], *given: Any) -> ProcessInstance:
    """Start a process and run it as far as it goes without waiting."""
    return go_on(launch(definition, *given))


def go_on(process: ProcessInstance, queue: str = "default") -> ProcessInstance:
    """Run whatever is ready on a queue, and what is put off for a moment."""
    run(queue)
    process.refresh_from_db()
    return process


def insist(process: ProcessInstance, times: int = 10) -> ProcessInstance:
    """Let so many long pauses between attempts pass."""
    pass_time(minutes=10 * times)
    process.refresh_from_db()
    return process


def visits(process: ProcessInstance, node: str) -> list[StepRun]:
    """Return all visits of a node, its elements too."""
    return list(process.step_runs.filter(node=node).order_by("pk"))


def visit(process: ProcessInstance, node: str) -> StepRun:
    """Return the one visit of a node."""
    (run,) = visits(process, node)
    return run


def results(process: ProcessInstance) -> dict[str, Any]:
    """Return the results of the nodes that are done, their last ones; maps have none of their own."""
    runs = process.step_runs.filter(status__in=["done", "skipped"], item=None)
    runs = runs.exclude(kind=StepKind.MAP).order_by("visit", "round")
    return {run.node: run.result for run in runs}


def statuses(process: ProcessInstance) -> dict[str, str]:
    """Return the status of each node's last visit."""
    runs = process.step_runs.filter(item=None).order_by("visit", "round")
    return {run.node: run.status for run in runs}


def complaint(process: ProcessInstance) -> Incident:
    """Return the one incident that is open about a process."""
    incident: Incident = Incident.objects.open().get(instance=process)
    return incident
