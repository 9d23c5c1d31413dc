"""How far processes have come, told as the change that brought them there was told when it was committed."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import F

from orchestrator.models import (
    Checkpoint,
    ProcessInstance,
    Status,
    StepStatus,
)
from orchestrator.signals import Change

OVER = {Status.COMPLETED: StepStatus.DONE, Status.CANCELLED: StepStatus.CANCELLED}
"""How a process manager's last step stands when the process has ended."""


def changes_after(known: Mapping[UUID, int]) -> list[Change]:
    """The newest change of each process that has come further than is known of it.

    Of a workflow, which may be in many steps, the change names none: what a page shows of them it fetches.

    Args:
        known: revisions by process.
    """
    rows = ProcessInstance.objects.filter(pk__in=known).order_by()
    found = rows.values_list("pk", "revision")
    further = [pk for pk, revision in found if revision > known[pk]]
    if not further:
        return []
    newest = Checkpoint.objects.filter(
        instance__in=further, revision=F("instance__revision")
    )
    told = newest.select_related("instance__definition").only(
        "revision",
        "status",
        "steps",
        "edge",
        "at",
        "instance__name",
        "instance__definition__kind",
    )
    return list(map(_change, told.order_by()))


def _change(checkpoint: Checkpoint) -> Change:
    instance = checkpoint.instance
    is_workflow = instance.definition.is_workflow
    status = OVER.get(Status(checkpoint.status), StepStatus.WAITING)
    return Change(
        instance.pk,
        instance.name,
        checkpoint.revision,
        checkpoint.status,
        {} if is_workflow else {str(name): str(status) for name in checkpoint.steps},
        checkpoint.edge,
        checkpoint.at.timestamp(),
    )
