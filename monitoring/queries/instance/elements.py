"""The elements of a map, by their numbers: searched and paged along the index that has them in that order.

A page looks at some elements at a time until it is full; where few match it stops, and the next page goes on there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Left, Right

from monitoring.masking import MASK, masked_text
from monitoring.queries.counts import MANY, grouped
from monitoring.queries.lists import KeyedPage
from orchestrator import secret_names
from orchestrator.definition.secrets import Secrets
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

PAGE = 30

SHOWN = 2_000
"""Characters of a result or an error that a page shows."""

KEY = 200
"""Characters of an element that are shown and searched."""

EACH = 1_000
"""Elements that one statement looks at."""

MOST = 10_000
"""Elements that one page looks at."""

SECONDS = 0.15
"""How long a page goes on looking."""

AT_ONCE = 500
"""Elements of a file that are read at a time."""

VISITS = 1_000
"""Visits of one map that are told from each other."""

LARGE = ("result", "error", "saved", "element")


def in_state(rows: QuerySet[StepRun], state: str) -> QuerySet[StepRun]:
    """Visits of a status, the open ones, or, for any other word, all but those that are of no account any more."""
    if state == "open":
        return rows.filter(finished_at=None)
    if state in StepStatus.values:
        return rows.filter(status=state)
    return rows.exclude(status__in=[StepStatus.NOT_TAKEN, StepStatus.SUPERSEDED])


@dataclass(frozen=True)
class ElementFilters:
    """What the elements of a map are narrowed to.

    Args:
        step: the map.
        search: a number as in #17; or text of the element or of its error, of which a number may be either.
        state: a status, or "open".
        visit: which visit of the map; 0 for the last.
    """

    step: str
    search: str = ""
    state: str = ""
    visit: int = 0
    secret: bool = False
    """Whether the elements may have secrets in them, or are not the reader's to see: nothing is looked for in them."""

    def narrowed(self, rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
        rows = in_state(rows, self.state)
        if not self.search or self.number is not None:
            return rows
        there = Q(error__icontains=self.search)
        if not self.secret:
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
        """The one element that is looked for."""
        wanted = self.search.removeprefix("#")
        one = self.search.startswith("#") and wanted.isascii() and wanted.isdecimal()
        return int(wanted[:9]) if one else None


@dataclass(frozen=True)
class SplitPart:
    """The elements of one status.

    Args:
        status: as it is shown.
        state: by which the list is narrowed to them.
        number: how many there are, with "+" where there may be more.
        x: where they begin on a bar of a thousand units.
        width: what they take of it.
    """

    status: str
    state: str
    number: str
    x: int
    width: int


@dataclass(frozen=True, kw_only=True)
class ElementPage(KeyedPage[StepRun]):
    """Some elements of a map in the order of their numbers, and how the whole map stands.

    Args:
        head: the visit of the map.
        looked_to: the number up to which was looked for them, where that is not all of them.
        visits: how often the map was visited.
        parts: how many elements have which status.
        filters: what they are narrowed to.
    """

    head: StepRun
    looked_to: int | None
    visits: int
    parts: list[SplitPart]
    filters: ElementFilters

    @property
    def number(self) -> int:
        return self.head.expected or 0

    @property
    def other_visits(self) -> list[int]:
        """The visits before and after this one."""
        near = (self.head.visit - 1, self.head.visit + 1)
        return [one for one in near if 1 <= one <= self.visits]


def element_page(
    instance: ProcessInstance, filters: ElementFilters, after: str = ""
) -> ElementPage | None:
    """A page of a map's elements; None while it has not begun.

    Args:
        instance: the process.
        filters: what they are narrowed to.
        after: where the page before has ended, as it said.
    """
    head, visits = _head(instance, filters)
    if head is None:
        return None
    secrets = secret_names.of_process(instance)
    filters = replace(filters, secret=filters.secret or bool(secrets))
    place = _place(after)
    rows, looked_to = _look(head, filters, place)
    older, last = "", (head.expected or 0) - 1
    if len(rows) > PAGE:
        rows = rows[:PAGE]
        older, looked_to = f"{rows[-1].item}-{rows[-1].pk}", None
    elif looked_to is not None and looked_to < last:
        older = f"{looked_to + 1}-0"
    else:
        looked_to = None
    parts = list(_split(head))
    rows = [discreet(run, secrets) for run in rows]
    return ElementPage(
        rows,
        older,
        head=head,
        looked_to=looked_to,
        visits=visits,
        parts=parts,
        filters=filters,
    )


def element_batches(
    instance: ProcessInstance, filters: ElementFilters
) -> Iterator[list[StepRun]]:
    """All that match, some at a time; each part is read when the one before has been taken."""
    head, _visits = _head(instance, filters)
    if head is None:
        return
    secrets = secret_names.of_process(instance)
    filters = replace(filters, secret=filters.secret or bool(secrets))
    last = (head.expected or 0) - 1
    for first in range(0, last + 1, AT_ONCE):
        if found := list(_part(head, filters, first, first + AT_ONCE)):
            yield [discreet(run, secrets) for run in found]


def discreet(run: StepRun, secrets: Secrets) -> StepRun:
    """An element without what is secret in it; the row is shown, and never saved."""
    stored = getattr(run, "element_text", None)
    if secrets and stored and run.item is not None:
        whole = run.node in secrets.elements
        shown = json.dumps(MASK) if whole else masked_text(stored, secrets.names)
        run.element_text = shown  # type: ignore[attr-defined]  # annotated
    return run


def element_text(run: StepRun) -> str:
    """An element as people read it: a text without its quotes; "" for what is none."""
    stored = getattr(run, "element_text", None) or ""
    try:
        value = json.loads(stored)
    except ValueError:
        return stored  # it was cut
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _head(
    instance: ProcessInstance, filters: ElementFilters
) -> tuple[StepRun | None, int]:
    """The visit of the map that is looked at, in its last round, and how many visits there were."""
    rows = StepRun.objects.filter(instance=instance, item=None, node=filters.step)
    # Said twice, for the index of visits that are none of a process manager.
    heads = rows.exclude(kind="").filter(kind=StepKind.MAP).defer(*LARGE)
    newest = heads.order_by("-visit", "-round")
    head = newest.first()
    visits = head.visit if head else 0
    if head and 0 < filters.visit < visits:
        head = newest.filter(visit=filters.visit).first()
    return head, min(visits, VISITS)


def _place(after: str) -> tuple[int, int]:
    """A number of an element and a key: rows after these two are on the page."""
    item, _, key = after.partition("-")
    numbers = item.isascii() and key.isascii() and item.isdecimal() and key.isdecimal()
    return (int(item[:9]), int(key[:18])) if numbers else (0, 0)


def _look(
    head: StepRun, filters: ElementFilters, place: tuple[int, int]
) -> tuple[list[StepRun], int | None]:
    """Rows from a place on, one more than a page has; and up to which number was looked for them."""
    if filters.number is not None:
        return list(_part(head, filters, filters.number, filters.number + 1)), None
    begun, found = time.monotonic(), list[StepRun]()
    first, key = place
    last = (head.expected or 0) - 1
    upto = min(first + MOST, last + 1)
    while first < upto:
        end = min(first + EACH, upto)
        rows = _part(head, filters, first, end)
        if key:
            rows = rows.filter(Q(item__gt=first) | Q(pk__gt=key))
        found += rows[: PAGE + 1 - len(found)]
        if len(found) > PAGE:
            return found, None
        first, key = end, 0
        if time.monotonic() - begun > SECONDS:
            break
    return found, first - 1


def _part(
    head: StepRun, filters: ElementFilters, first: int, end: int
) -> QuerySet[StepRun]:
    """The rows of the elements from one number to before another, in their order."""
    rows = StepRun.objects.filter(instance=head.instance_id, node=head.node)
    rows = rows.filter(visit=head.visit, item__gte=first, item__lt=end)
    rows = filters.narrowed(rows).defer(*LARGE)
    shown = rows.annotate(
        result_text=Left(Cast("result", TextField()), SHOWN + 1),
        error_text=Right("error", SHOWN),
        element_text=Left(Cast("element", TextField()), KEY),
    )
    return shown.select_related("child").order_by("item", "pk")


OPEN = ("failed", "running", "retrying", "ready", "waiting")


def _split(head: StepRun) -> Iterator[SplitPart]:
    """How many elements of a map have which status.

    What is settled the map itself counts; of what is open at most `MANY` are looked at.
    """
    progress = head.progress if isinstance(head.progress, dict) else {}
    # A failure that the map puts up with is settled; one that it does not keeps its element open.
    numbers = {"done": progress.get("done", 0), "handled": progress.get("failed", 0)}
    capped = False
    if head.finished_at is None:
        rows = StepRun.objects.filter(instance=head.instance_id, finished_at=None)
        rows = rows.filter(node=head.node, item__isnull=False).order_by()
        of_open: dict[str, int] = dict(grouped(rows, "status", cap=MANY))
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
