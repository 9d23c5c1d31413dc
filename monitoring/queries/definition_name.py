"""The definition's name of what belongs to a process."""

from django.db.models import OuterRef, Subquery

from orchestrator.models import ProcessInstance


def definition_name(process: str = "instance_id") -> Subquery:
    """That of each row's process, asked of each: a join may be planned as a look at every process.

    Args:
        process: the row's column with the process id.
    """
    found = ProcessInstance.objects.filter(pk=OuterRef(process))
    return Subquery(found.values("name")[:1])
