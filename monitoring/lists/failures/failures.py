"""The failures page: open failures in groups of one cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from monitoring.lists.failures.causes import open_of_cause
from monitoring.lists.failures.failure_marks import (
    Marking,
    handled_causes,
    handling_of,
    unhandled_failures,
)
from monitoring.lists.failures.trends import Trend, trends
from monitoring.queries.counts import (
    CAP,
    FEW,
    MANY,
    MARK,
    Capped,
    ForEach,
    count_by,
    count_rows,
)
from monitoring.queries.distinct_values import distinct_values
from monitoring.queries.lists import KeyedPage, make_page, parse_number
from monitoring.queries.processes import definition_name
from orchestrator.models import Definition, Incident
from orchestrator.models.incident import EVENT_KINDS

PAGE = 50
"""The size of a page of groups, or of one group's failures."""

CAUSES = 200
"""The number of causes that an index finds, for the case that one cause fills the newest failures."""

OPEN_FAILURES = (
    f"resolved_at IS NULL AND NOT (instance_id IS NULL AND kind IN {EVENT_KINDS})"
)
"""The condition of the indexes of open failures, in SQL."""

ORDERS = ("newest", "largest")


@dataclass(frozen=True)
class AlikeFailures:
    """Open failures of one cause.

    Args:
        newest: the newest failure.
        oldest: the oldest open failure.
        number: the number of open failures.
        trend: their number over time, and their versions.
        handling: the mark of the cause, if any.
    """

    newest: Incident
    oldest: Incident
    number: Capped
    trend: Trend | None = None
    handling: Marking | None = None

    @property
    def messages(self) -> list[str]:
        return [self.newest.said, self.oldest.said]

    @property
    def definition(self) -> Definition | None:
        """The definition of the processes; None for events that no process took."""
        return self.newest.instance.definition if self.newest.instance else None


@dataclass(frozen=True)
class GroupPage(KeyedPage[AlikeFailures]):
    """Groups in an order, and whether there are more; only the order "newest" has further pages."""

    order: str = "newest"
    more: bool = False


def open_failures_of(definition: str) -> QuerySet[Incident]:
    """Return the open unhandled failures of one definition, among the newest of all definitions."""
    rows = Incident.objects.open().failures()
    newest = rows.order_by("-pk").values("pk")[:CAP]
    some = rows.filter(pk__in=newest).exclude(fingerprint__in=handled_causes())
    return _limit_to(some, [definition])


def _limit_to(rows: QuerySet[Incident], names: Collection[str]) -> QuerySet[Incident]:
    """Limit incidents to processes of some definitions.

    A subquery reads the name for each row: PostgreSQL may run a join as a scan of all processes of a definition.
    """
    found: QuerySet[Incident] = rows.alias(named=definition_name()).filter(
        named__in=names
    )
    return found


def definition_names(keys: Iterable[int]) -> dict[int, str | None]:
    """Return the names of the definitions of some failures by key; None for a failure without a process.

    All failures of one cause have one definition: callers pass one key of each cause.
    """
    rows = Incident.objects.filter(pk__in=list(keys)).annotate(of=definition_name())
    return dict(rows.values_list("pk", "of"))


def count_open_failures(definition: str = "") -> Capped:
    """Return the number of open unhandled failures, of all definitions or of one."""
    if definition:
        return count_rows(open_failures_of(definition), CAP)
    parts = unhandled_failures(handled_causes())
    if len(parts) == 1:
        return count_rows(parts[0])
    found = count_by(parts, "kind", cap=FEW)
    return Capped(min(sum(number for _kind, number in found), FEW), FEW)


def with_processes(rows: QuerySet[Incident]) -> QuerySet[Incident]:
    """Select incidents with the related rows that pages show, without large columns."""
    return rows.select_related(
        "instance__parent",
        "instance__definition",
        "event",
        "command",
        "step_run__child",
    ).defer(
        "instance__definition__graph",
        "instance__data",
        "instance__parent__data",
        "step_run__result",
        "step_run__element",
        "step_run__saved",
        "step_run__error",
    )


def failure_groups(
    order: str = "newest", before: str = "", definition: str = "", size: int = 0
) -> GroupPage:
    """Return a page of groups of open failures.

    Args:
        order: "newest" or "largest" first.
        before: the key of the last group's newest failure on the page before, for the order "newest".
        definition: a name, or "" for all.
        size: the number of groups; 0 for the default.
    """
    size, order = size or PAGE, order if order in ORDERS else "newest"
    edge = parse_number(before) if order == "newest" else None
    newest = _newest_by_cause(definition, edge)
    if order == "newest":
        wanted = sorted(newest.values(), reverse=True)[: size + 1]
        numbers = _numbers(newest, wanted[:size])
    else:
        numbers = _numbers(newest, newest.values())
        ranked = sorted(newest.items(), key=lambda of: (-numbers[of[0]], -of[1]))
        wanted = [key for _, key in ranked[: size + 1]]
    page = make_page(wanted, size, int)
    older = page.older if order == "newest" else ""
    groups = with_trends(_groups(page.rows, numbers))
    return GroupPage(groups, older, order=order, more=bool(page.older))


def handled_groups(definition: str = "") -> list[AlikeFailures]:
    """Return the groups with the mark "handled", newest failure first."""
    causes = handled_causes()
    newest = _newest_of(causes)
    if definition:
        known = _limit_to(Incident.objects.filter(pk__in=newest.values()), [definition])
        newest = dict(known.values_list("fingerprint", "pk"))
    keys = sorted(newest.values(), reverse=True)[:PAGE]
    return with_trends(_groups(keys, _numbers(newest, keys)))


def with_trends(groups: Sequence[AlikeFailures]) -> list[AlikeFailures]:
    """Add to groups their trends and marks."""
    causes = [group.newest.fingerprint for group in groups]
    trend, said = trends(causes), handling_of(causes)
    return [
        replace(group, trend=trend.get(cause), handling=said.get(cause))
        for cause, group in zip(causes, groups, strict=True)
    ]


def largest_group(definitions: Collection[str] | None = None) -> AlikeFailures | None:
    """Return the group with the most open failures, of equal groups the newest; None without failures.

    Args:
        definitions: the names to look at; None for all failures.
    """
    newest: dict[str, int] = {}
    for name in [""] if definitions is None else definitions:
        newest |= _newest_by_cause(name, None)
    numbers = _numbers(newest, newest.values())
    ranked = sorted(newest, key=lambda cause: (-numbers.get(cause, 0), -newest[cause]))
    return next(iter(_groups([newest[cause] for cause in ranked[:1]], numbers)), None)


def groups_with_text(
    text: str, most: int, definitions: Collection[str] | None = None
) -> list[AlikeFailures]:
    """Return the groups whose messages or error classes contain a text, newest first.

    Args:
        text: compared without case, among the newest failures.
        most: the maximum number of groups.
        definitions: the names to look at; None for all failures.
    """
    if definitions is not None and not definitions:
        return []
    says = Q(message__icontains=text) | Q(error__icontains=text)
    rows = Incident.objects.open().order_by("-pk")
    if definitions is not None:
        rows, says = rows.annotate(of=definition_name()), says & Q(of__in=definitions)
    # An annotation of each row: with a condition PostgreSQL may scan all rows for each that matches.
    told = rows.annotate(says=ExpressionWrapper(says, BooleanField()))
    looked_at = told.values_list("fingerprint", "pk", "says")[:CAP]
    found = {cause: pk for cause, pk, does in reversed(list(looked_at)) if does}
    wanted = sorted(found.values(), reverse=True)[:most]
    return _groups(wanted, _numbers(found, wanted))


def _newest_by_cause(definition: str, before: int | None) -> dict[str, int]:
    """Return the key of the newest failure by fingerprint: of the latest groups, then of others."""
    left_out = [] if definition else handled_causes()
    parts = unhandled_failures(left_out)
    if definition:
        parts = [open_failures_of(definition)]
    most = max(MANY // len(parts), 1)
    below = Q() if before is None else Q(pk__lt=before)
    rows = [part.filter(below).order_by("-pk") for part in parts]
    looked_at = count_by(rows, "fingerprint", newest="id", cap=most)
    found = {cause: key for cause, _number, key in looked_at}
    if not definition and sum(number for _, number, _ in looked_at) >= most:
        behind = {f: key for f, key in _causes().items() if f not in left_out}
        found |= {f: key for f, key in behind.items() if before is None or key < before}
    return _without_shown(found, before) if before is not None else found


def _without_shown(found: dict[str, int], before: int) -> dict[str, int]:
    """Leave out the groups of earlier pages."""
    newer = open_of_cause(OuterRef("fingerprint")).filter(pk__gte=before)
    rows = Incident.objects.filter(~Exists(newer), pk__in=found.values())
    return dict(rows.values_list("fingerprint", "pk"))


def _causes() -> dict[str, int]:
    """Return the first groups by fingerprint; an index leads from each to the next, however large it is."""
    found = distinct_values(Incident, "fingerprint", CAUSES, OPEN_FAILURES)
    return _newest_of(found) if found else {}


def _newest_of(causes: Sequence[str]) -> dict[str, int]:
    """Return the key of the newest open failure of each cause with open failures."""
    each = count_by(ForEach(_of_cause, causes, alike=True), "fingerprint", "id", cap=1)
    return {fingerprint: key for fingerprint, key, _ in each}


def _of_cause() -> QuerySet[Incident]:
    return open_of_cause(MARK)


def _numbers(newest: dict[str, int], wanted: Iterable[int]) -> dict[str, int]:
    """Return the number of open failures of each wanted group, by fingerprint."""
    keys = set(wanted)
    causes = [fingerprint for fingerprint, key in newest.items() if key in keys]
    each = ForEach(_of_cause, causes, alike=True)
    return dict(count_by(each, "fingerprint", cap=CAP))


def _groups(keys: list[int], numbers: dict[str, int]) -> list[AlikeFailures]:
    """Return the groups of these newest failures, in this order."""
    first = open_of_cause(OuterRef("fingerprint")).order_by("-fingerprint", "pk")
    rows = with_processes(Incident.objects.open()).defer("detail")
    newest = rows.annotate(first=Subquery(first.values("pk")[:1])).in_bulk(keys)
    oldest = Incident.objects.defer("detail").in_bulk(
        [row.first for row in newest.values()]
    )
    return [
        AlikeFailures(row, oldest[row.first], Capped(numbers[row.fingerprint], CAP))
        for row in (newest[key] for key in keys if key in newest)
        if row.first in oldest and row.fingerprint in numbers
    ]
