"""What must hold of checkpoints, and of what the pure definition makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, F, Max, Min

from orchestrator import registry
from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import decode, digest, encode
from orchestrator.engine import inbox
from orchestrator.engine.invariants import workflow_model
from orchestrator.engine.invariants.runs import known
from orchestrator.exceptions import ProcessionError
from orchestrator.models import CauseKind, Definition, InboxEvent, ProcessInstance


def dense_history() -> Iterator[str]:
    """I2: checkpoints run from 1 to the instance's revision without a gap."""
    spans = ProcessInstance.objects.annotate(
        low=Min("checkpoints__revision"),
        high=Max("checkpoints__revision"),
        count=Count("checkpoints"),
    )
    broken = spans.exclude(low=1, high=F("revision"), count=F("revision"))
    for instance in broken[:20]:
        yield f"{instance.pk} is at revision {instance.revision} but has {instance.count} checkpoints"


def model() -> Iterator[str]:
    """I3: the stored state is what the pure definition makes of what has happened, one by one."""
    for instance in _all():
        try:
            definition = registry.definition(instance.name, instance.definition.version)
            if issubclass(definition, ProcessManager):
                yield from _replay(definition, instance)
            else:
                yield from workflow_model.check(instance)
        except ProcessionError as error:
            yield f"{instance.pk}: {error}"


def joins() -> Iterator[str]:
    """I5: a join counts exactly the branches that were resolved, and those of them that were taken."""
    for instance in _all(definition__kind=Definition.Kind.WORKFLOW):
        try:
            yield from workflow_model.check_joins(instance)
        except ProcessionError:
            continue  # the running code lacks the definition: `model` says so


def _all(**conditions: Any) -> Iterator[ProcessInstance]:
    rows = ProcessInstance.objects.filter(**conditions)
    yield from rows.select_related("definition").iterator(500)


def _replay(
    definition: type[ProcessManager], instance: ProcessInstance
) -> Iterator[str]:
    step, data = definition.first, None
    events = {e.pk: e for e in InboxEvent.objects.filter(process=instance)}
    for checkpoint in instance.checkpoints.order_by("revision"):
        if digest(checkpoint.data) != checkpoint.checksum:
            yield f"checkpoint {checkpoint.revision} of {instance.pk} does not match its checksum"
        cause = known(checkpoint.cause)
        if cause is not None and cause.kind == CauseKind.EVENT:
            row = events.get(int(cause.ref))
            if row is None:
                yield f"checkpoint {checkpoint.revision} of {instance.pk} names event {cause.ref}, which is not there"
                return
            decision = definition.decide(step, data, inbox.read(row.type, row.body))
            step, data = decision.step, decision.data
        elif cause is not None and cause.kind == CauseKind.DEADLINE:
            decision = definition.decide_deadline(step, data, int(cause.part))
            step, data = decision.step, decision.data
        if (
            cause is None
            or checkpoint.steps != [str(step)]
            or data is None
            or encode(data) != checkpoint.data
        ):
            yield f"checkpoint {checkpoint.revision} of {instance.pk} is not what {checkpoint.cause} leads to"
            return
    if (
        data is None
        or instance.step != str(step)
        or decode(definition.Data, instance.data) != data
    ):
        yield f"{instance.pk} is not where its history ends"
