"""The newest changes of processes, in the form that commits announce."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import F

from orchestrator.models import Checkpoint, ProcessInstance, Status, StepStatus
from orchestrator.signals import Change

OVER = {Status.COMPLETED: StepStatus.DONE, Status.CANCELLED: StepStatus.CANCELLED}
"""The status of a process manager's last step after the end of its process."""


COLUMNS = (
    *("revision", "status", "steps", "edge", "at"),
    *("instance__name", "instance__definition__kind"),
)


def changes_after(known: Mapping[UUID, int]) -> list[Change]:
    """Return the newest change of each process with a later revision than the known one.

    A workflow may be in many steps: its change names none, and pages fetch them.

    Args:
        known: the known revisions by process.
    """
    rows = ProcessInstance.objects.filter(pk__in=known).order_by()
    found = rows.values_list("pk", "revision")
    further = [pk for pk, revision in found if revision > known[pk]]
    if not further:
        return []
    newest = Checkpoint.objects.filter(
        instance__in=further, revision=F("instance__revision")
    )
    shown = newest.select_related("instance__definition").only(*COLUMNS)
    return list(map(_change, shown.order_by()))


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
