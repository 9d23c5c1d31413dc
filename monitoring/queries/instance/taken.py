"""The edges that an instance has taken, as its checkpoints name them."""

from collections.abc import Iterator

from orchestrator.models import Definition, OperatorAction, ProcessInstance


def taken_edges(instance: ProcessInstance, until: int | None = None) -> set[str]:
    """The ids of the edges taken, without those on a way that was given up when the process was resumed.

    Args:
        instance: the process.
        until: the revision as of which that is told; None for now.
    """
    rows = instance.checkpoints.exclude(edge="")
    if until is not None:
        rows = rows.filter(revision__lte=until)
    for to, at in _given_up(instance):
        if until is None or at <= until:
            rows = rows.exclude(revision__gt=to, revision__lt=at)
    said = rows.order_by("edge").values_list("edge", flat=True).distinct()
    return {edge for text in said for edge in text.split(",")}


def _given_up(instance: ProcessInstance) -> Iterator[tuple[int, int]]:
    """The revisions between which what was done does not count any more."""
    if instance.definition.kind != Definition.Kind.WORKFLOW:
        return  # process managers are not resumed
    resumed = OperatorAction.objects.filter(
        instance=instance, action="resume", result=OperatorAction.Result.DONE
    )
    for after in resumed.values_list("after", flat=True):
        yield after["resumed_from"], after["revision"]
