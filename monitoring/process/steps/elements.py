"""The elements of a map in the order of their numbers, searched and paged along the index with that order.

A page looks at some elements at a time until it is full. With few matches it stops early, and the next page continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Left, Right

from monitoring.base.masking import sees_data
from monitoring.queries.counts import MANY, count_by
from monitoring.queries.lists import KeyedPage, Search, parse_number
from orchestrator import secret_names
from orchestrator.definition.secrets import MASK, Secrets, mask_json
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

PAGE = 30

SHOWN = 2_000
"""The number of characters of a result or an error that a page shows."""

KEY = 200
"""The number of characters of an element that the page shows and searches."""

EACH = 1_000
"""The number of elements that one statement reads."""

MOST = 10_000
"""The maximum number of elements that one page reads."""

SECONDS = 0.15
"""The time after which a page stops reading, in seconds."""

AT_ONCE = 500
"""The number of elements of a file that one statement reads."""

VISITS = 1_000
"""The maximum number of visits of one map that the page tells apart."""

LARGE = ("result", "error", "saved", "element")


def visits_in_state(rows: QuerySet[StepRun], state: str) -> QuerySet[StepRun]:
    """Limit visits to a status, or to open ones; any other word leaves out superseded visits and those not taken."""
    if state == "open":
        return rows.filter(finished_at=None)
    if state in StepStatus.values:
        return rows.filter(status=state)
    return rows.exclude(status__in=[StepStatus.NOT_TAKEN, StepStatus.SUPERSEDED])


@dataclass(frozen=True)
class VisitFilters(Search):
    """The filters of a table of visits or of a map's elements, and the key where its page begins.

    Args:
        step: the step, or the map whose elements are shown.
        search: text of a step, an element or an error, or the number of an element as in #17.
        state: a status, or "open".
        runs: the key where the previous page ended.
        group: a part of the diagram that stands for several steps.
        visit: the number of a visit of the map; the last visit if it is not a number.
    """

    step: str = ""
    search: str = ""
    state: str = ""
    runs: str = ""
    group: str = ""
    visit: str = ""

    @property
    def any(self) -> bool:
        return bool(self.step or self.search or self.state)

    def of_elements(
        self, rows: QuerySet[StepRun], secrets: Secrets
    ) -> QuerySet[StepRun]:
        """Return the matching elements of a map; elements with secrets, or hidden from the reader, are not searched."""
        rows = visits_in_state(rows, self.state)
        if not self.search or self.number is not None:
            return rows
        there = Q(error__icontains=self.search)
        if not secrets and (self.reader is None or sees_data(self.reader)):
            rows = rows.alias(key=Left(Cast("element", TextField()), KEY))
            for stored in {
                json.dumps(self.search, ensure_ascii=one) for one in (True, False)
            }:
                there |= Q(key__icontains=stored[1:-1])
        if self.search.isdecimal():
            there |= Q(item=int(self.search[:9]))
        found: QuerySet[StepRun] = rows.filter(there)
        return found

    @property
    def number(self) -> int | None:
        """The number in a search for one element; None for any other search."""
        wanted = self.search.removeprefix("#")
        one = self.search.startswith("#") and wanted.isascii() and wanted.isdecimal()
        return int(wanted[:9]) if one else None


@dataclass(frozen=True)
class SplitPart:
    """The elements of one status.

    Args:
        status: the shown status.
        state: the filter of the list for these elements.
        number: the number of elements, with "+" where there may be more.
        x: their beginning on a bar of a thousand units.
        width: their width on it.
    """

    status: str
    state: str
    number: str
    x: int
    width: int


@dataclass(frozen=True, kw_only=True)
class ElementPage(KeyedPage[StepRun]):
    """Some elements of a map in the order of their numbers, and the state of the whole map.

    Args:
        head: the visit of the map.
        looked_to: the last number that was read, if not all were.
        visits: the number of the map's visits.
        parts: the number of elements by status.
    """

    head: StepRun
    looked_to: int | None
    visits: int
    parts: list[SplitPart]

    @property
    def number(self) -> int:
        return self.head.expected or 0

    @property
    def other_visits(self) -> list[int]:
        """The visits before and after this one."""
        near = (self.head.visit - 1, self.head.visit + 1)
        return [one for one in near if 1 <= one <= self.visits]


def element_page(
    instance: ProcessInstance, filters: VisitFilters
) -> ElementPage | None:
    """Return a page of a map's elements; None if the map has not begun.

    Args:
        instance: the process.
        filters: the filters of the page.
    """
    head, visits = _head(instance, filters)
    if head is None:
        return None
    secrets = secret_names.process_secrets(instance)
    rows, looked_to = _look(_elements(head, filters, secrets), head, filters)
    older, last = "", (head.expected or 0) - 1
    if len(rows) > PAGE:
        rows = rows[:PAGE]
        older, looked_to = f"{rows[-1].item}-{rows[-1].pk}", None
    elif looked_to is not None and looked_to < last:
        older = f"{looked_to + 1}-0"
    else:
        looked_to = None
    return ElementPage(
        [mask_element(run, secrets) for run in rows],
        older,
        head=head,
        looked_to=looked_to,
        visits=visits,
        parts=list(_split(head)),
    )


def element_batches(
    instance: ProcessInstance, filters: VisitFilters
) -> Iterator[list[StepRun]]:
    """Yield all matching elements in parts; each part is read when the caller wants it."""
    head, _visits = _head(instance, filters)
    if head is None:
        return
    secrets = secret_names.process_secrets(instance)
    rows = _elements(head, filters, secrets)
    for first in range(0, head.expected or 0, AT_ONCE):
        if found := list(_numbered(rows, first, first + AT_ONCE)):
            yield [mask_element(run, secrets) for run in found]


def mask_element(run: StepRun, secrets: Secrets) -> StepRun:
    """Return an element with secrets masked; the row must not be saved."""
    stored = getattr(run, "element_text", None)
    if secrets and stored and run.item is not None:
        whole = run.node in secrets.elements
        shown = json.dumps(MASK) if whole else mask_json(stored, secrets.names)
        run.element_text = shown  # type: ignore[attr-defined]  # annotated
    return run


def element_text(run: StepRun) -> str:
    """Return an element as people read it: a text without its quotes; "" without an element."""
    stored = getattr(run, "element_text", None) or ""
    try:
        value = json.loads(stored)
    except ValueError:
        return stored  # it was cut
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _head(
    instance: ProcessInstance, filters: VisitFilters
) -> tuple[StepRun | None, int]:
    """Return the wanted visit of the map, in its last round, and the number of visits."""
    rows = StepRun.objects.filter(instance=instance, item=None, node=filters.step)
    # Two conditions, for the index of a workflow's visits.
    heads = rows.exclude(kind="").filter(kind=StepKind.MAP).defer(*LARGE)
    newest = heads.order_by("-visit", "-round")
    head = newest.first()
    visits, wanted = head.visit if head else 0, parse_number(filters.visit, 9) or 0
    if 0 < wanted < visits:
        head = newest.filter(visit=wanted).first()
    return head, min(visits, VISITS)


def _place(after: str) -> tuple[int, int]:
    """Parse the place after which a page begins: a number and a key."""
    item, _, key = after.partition("-")
    numbers = item.isascii() and key.isascii() and item.isdecimal() and key.isdecimal()
    return (int(item[:9]), int(key[:18])) if numbers else (0, 0)


def _look(
    elements: QuerySet[StepRun], head: StepRun, filters: VisitFilters
) -> tuple[list[StepRun], int | None]:
    """Read one row more than a page has, and return the last number read; None for a full page."""
    if filters.number is not None:
        return list(_numbered(elements, filters.number, filters.number + 1)), None
    begun, found = time.monotonic(), list[StepRun]()
    first, key = _place(filters.runs)
    upto = min(first + MOST, head.expected or 0)
    while first < upto:
        end = min(first + EACH, upto)
        rows = _numbered(elements, first, end)
        if key:
            rows = rows.filter(Q(item__gt=first) | Q(pk__gt=key))
        found += rows[: PAGE + 1 - len(found)]
        if len(found) > PAGE:
            return found, None
        first, key = end, 0
        if time.monotonic() - begun > SECONDS:
            break
    return found, first - 1


def _elements(
    head: StepRun, filters: VisitFilters, secrets: Secrets
) -> QuerySet[StepRun]:
    """Return the matching elements of a visit of a map, in their order."""
    rows = StepRun.objects.filter(instance=head.instance_id, node=head.node)
    rows = filters.of_elements(rows.filter(visit=head.visit), secrets)
    return with_beginnings(rows).order_by("item", "pk")


def _numbered(rows: QuerySet[StepRun], first: int, end: int) -> QuerySet[StepRun]:
    """Return the elements from one number to before another."""
    return rows.filter(item__gte=first, item__lt=end)


def with_beginnings(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """Select visits with the beginnings of large columns, and with the end of an error."""
    shown = rows.defer(*LARGE).annotate(
        result_text=beginning_of("result"),
        error_text=Right("error", SHOWN),
        element_text=Left(Cast("element", TextField()), KEY),
    )
    return shown.select_related("child")


def beginning_of(column: str) -> Left:
    """Return the beginning of a JSON column as text: one character more than a page shows."""
    return Left(Cast(column, TextField()), SHOWN + 1)


OPEN = ("failed", "running", "retrying", "ready", "waiting")


def _split(head: StepRun) -> Iterator[SplitPart]:
    """Count the elements of a map by status.

    The row of the map counts settled elements; at most `MANY` open elements are read.
    """
    progress = head.progress if isinstance(head.progress, dict) else {}
    # A failure that the map tolerates is settled; any other keeps its element open.
    numbers = {"done": progress.get("done", 0), "handled": progress.get("failed", 0)}
    capped = False
    if head.finished_at is None:
        rows = StepRun.objects.filter(instance=head.instance_id, finished_at=None)
        rows = rows.filter(node=head.node, item__isnull=False).order_by()
        of_open: dict[str, int] = dict(count_by(rows, "status", cap=MANY))
        capped = sum(of_open.values()) >= MANY
        numbers |= {name: of_open.get(name, 0) for name in OPEN}
    whole, x = max(head.expected or 0, 1), 0
    for name, number in numbers.items():
        if number:
            width = min(number * 1000 // whole, 1000 - x)
            said = f"{number:,}{'+' if capped and name in OPEN else ''}"
            yield SplitPart(
                name, "failed" if name == "handled" else name, said, x, width
            )
            x += width
