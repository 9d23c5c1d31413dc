"""The edges that an instance has taken, as its checkpoints name them."""

from monitoring.queries.instance.past import resumptions_of
from monitoring.queries.instance.transitions import transitions_of
from monitoring.queries.instance.versions import versions_of
from orchestrator.models import ProcessInstance

LOOKED_AT = 1_000
"""Transitions at each end of a process manager's history that are looked at: it may be of any length."""


def looked_at_in_part(instance: ProcessInstance) -> int:
    """How many transitions at each end are looked at, where there are others between them; else 0."""
    manager = not instance.definition.is_workflow
    return LOOKED_AT if manager and instance.revision > 2 * LOOKED_AT else 0


def taken_edges(instance: ProcessInstance, until: int | None = None) -> set[str]:
    """The ids of the edges taken, without those on a way that was given up when the process was resumed.

    Of a process manager those of its first transitions and of the last ones until then; of a workflow, whose graph says
    how many there can be, all. What was taken in another version is told by the edges of this one, where it has them.

    Args:
        instance: the process.
        until: the revision as of which that is told; None for now.
    """
    last = instance.revision if until is None else until
    versions = versions_of(instance)
    spans = versions.spans(last)
    found = {span[0]: _taken(instance, span, until) for span in spans}
    return versions.edges(found, last)


def _taken(
    instance: ProcessInstance, span: tuple[int, int], until: int | None
) -> set[str]:
    """Those that were taken in a span of revisions, on one version."""
    first, last = span
    if not instance.definition.is_workflow:
        return _at_both_ends(instance, first, last)
    rows = instance.checkpoints.exclude(edge="")
    if first:
        rows = rows.filter(revision__gte=first)
    if until is not None or last < instance.revision:
        rows = rows.filter(revision__lte=last)
    for to, at in resumptions_of(instance):
        if until is None or at <= until:
            rows = rows.exclude(revision__gt=to, revision__lt=at)
    said = rows.order_by("edge").values_list("edge", flat=True).distinct()
    return {edge for text in said for edge in text.split(",")}


def _at_both_ends(instance: ProcessInstance, since: int, last: int) -> set[str]:
    """What the first transitions and the last ones have taken."""
    begin = (since, min(since + LOOKED_AT, last))
    end = (max(last - LOOKED_AT + 1, since), last)
    said = transitions_of(instance).edges([begin, end])
    return {edge for text in said for edge in text.split(",")}
