"""Loads an earlier version's rows into an empty database, runs them to the end, and prints as JSON what it has seen."""

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.checks import run_checks
from django.core.management import call_command
from django.db.models import QuerySet

from orchestrator import registry
from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.definition.graph import Graph
from orchestrator.engine import operations
from orchestrator.engine.invariants import records, violations
from orchestrator.models import (
    Blocked,
    Cause,
    Checkpoint,
    Definition,
    FailureMark,
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    Verdict,
)
from tests.apps.compensation.rallies import RALLIES
from tests.first_version.ending import asked, end_all, not_ended, run
from tests.first_version.loading import LATER, load, there_and_back

# No worker has run since the load, however long a busy machine takes to migrate.
records.LATE = timedelta(hours=1)


def migrated() -> dict[str, Any]:
    """Return what can be seen before anything has run."""
    causes = set(Checkpoint.objects.values_list("cause", flat=True))
    return {
        "columns": columns(),
        "definitions": Definition.objects.count(),
        **standing(),
        "live": ProcessInstance.objects.live().count(),
        "stranded": stranded().count(),
        "parked again": InboxEvent.objects.filter(
            verdict=Verdict.PARKED, error__contains="is not expected in step"
        ).count(),
        "causes": sorted({Cause.parse(text).kind for text in causes}),
        "untold": [
            row.cause for row in Checkpoint.objects.all() if row.said == "A change"
        ],
        "misread": [text for text in causes if str(Cause.parse(text)) != text],
    }


def standing() -> dict[str, Any]:
    """Return what is wrong with the definitions, the settings and the rows."""
    return {
        "changed": sorted({*changed_definitions(), *changed_processes()}),
        "checks": [str(message) for message in run_checks(databases=["default"])],
        "broken": violations(),
    }


def stranded() -> QuerySet[InboxEvent]:
    """Return the events that were given up while their process lives."""
    given_up = [Verdict.UNEXPECTED, Verdict.UNROUTED]
    live = ProcessInstance.objects.live()
    return InboxEvent.objects.filter(verdict__in=given_up, process__in=live)


def columns() -> list[list[Any]]:
    """Return the visits of which the new columns say something, by the names of their process and step."""
    said = StepRun.objects.exclude(blocked="", blocked_on="", lost="", given_back=0)
    rows = said.order_by("instance__name", "node", "lost").values_list(
        "instance__name", "node", "blocked", "blocked_on", "lost", "given_back"
    )
    return [list(row) for row in rows]


def changed_definitions() -> Iterator[str]:
    """Yield the stored definitions that the running code has with another fingerprint, or not at all."""
    for row in Definition.objects.all():
        definition = registry.definitions.get((row.name, row.version))
        if definition is None:
            yield f"{row.name} is gone"
            continue
        fixed = issubclass(definition, ProcessManager) or definition.static is not None
        if fixed and definition.graph().fingerprint() != row.fingerprint:
            yield row.name


def changed_processes() -> Iterator[str]:
    """Yield the definitions of processes whose graph, if need be made from their input, has another fingerprint."""
    for process in ProcessInstance.objects.select_related("definition"):
        if graph(process).fingerprint() != process.definition.fingerprint:
            yield process.name


def graph(process: ProcessInstance) -> Graph:
    definition = registry.find_definition(process.name, process.definition.version)
    if issubclass(definition, ProcessManager):
        return definition.graph()
    return definition.graph(definition.plan(decode(definition.Input, process.data)))


def ended(undone_later: ProcessInstance) -> dict[str, Any]:
    """Return what can be seen when everything has run."""
    undone_later.refresh_from_db()
    undos = undone_later.step_runs.filter(kind=StepKind.UNDO)
    lost = Incident.objects.filter(step__in=["settle", "pay"]).order_by("-step")
    return {
        "not ended": not_ended(),
        "broken in the end": violations(),
        "undone": [undone_later.status, *undos.values_list("node", "status")],
        "lost": [incident.message for incident in lost],
    }


def main() -> None:
    for workflow in RALLIES:
        registry.register_definition(workflow)
    load()
    back = there_and_back()
    call_command("migrate", verbosity=0)
    seen = {"as before": back, **migrated()}
    undone_later = StepRun.objects.get(blocked=Blocked.UNDOING).instance
    end_all()
    json.dump({**seen, **ended(undone_later)}, sys.stdout)


def later() -> None:
    """The same of a database that commit d584bb8 has filled."""
    for workflow in RALLIES:
        registry.register_definition(workflow)
    load(LATER)
    call_command("migrate", verbosity=0)
    statuses = ProcessInstance.objects.values_list("status", flat=True)
    known = set(Incident.objects.values_list("fingerprint", flat=True))
    seen = {
        **standing(),
        "statuses": sorted(set(statuses)),
        "parked": InboxEvent.objects.parked().count(),
        "marks": FailureMark.objects.filter(fingerprint__in=known).count(),
    }
    newest = Incident.objects.latest("pk").pk
    failed = ProcessInstance.objects.filter(status=Status.FAILED, name="fail-fast")
    keys = list(failed.values_list("pk", flat=True))
    for key in keys:
        operations.retry(key, request=asked())
    run()
    newer = Incident.objects.filter(pk__gt=newest, instance__in=keys)
    causes = newer.values_list("earlier", "fingerprint")
    again = [earlier or cause for earlier, cause in causes]
    seen |= {"failed again": len(again), "of other causes": sorted(set(again) - known)}
    end_all()
    seen |= {"not ended": not_ended(), "broken in the end": violations()}
    json.dump(seen, sys.stdout)
