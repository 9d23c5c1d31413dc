"""The page of a group of failures: the failures, what they have in common, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import reduce
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Length
from django.utils.translation import gettext as _

from monitoring.base.masking import names_of
from monitoring.lists.failures.causes import open_of_cause
from monitoring.lists.failures.failures import PAGE, AlikeFailures, with_processes
from monitoring.queries.counts import CAP, count_rows
from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.models import Incident, ProcessInstance

LARGE = 10_000
"""The maximum length of a process's data to compare, in characters."""

FIELDS = 20
"""The maximum number of compared fields."""

VALUES = 3
"""The number of values of one field that the page shows; it counts the others."""

LONGEST = 80
"""The maximum length of a shown value."""


@dataclass(frozen=True)
class ComparedProperty:
    """The values of one property in a group.

    Args:
        name: of the field, or a label of the console.
        values: the most frequent values with their numbers.
        others: the number of members with another value.
        all: the number of compared members.
        ours: whether the name is a label of the console, not a field of the application.
    """

    name: str
    values: list[tuple[str, int]]
    others: int
    all: int
    ours: bool = False

    @property
    def same(self) -> bool:
        return len(self.values) == 1 and not self.others

    @property
    def all_differ(self) -> bool:
        """Whether all values differ, like ids, which do not tell the cause."""
        return self.all > 1 and self.values[0][1] == 1


@dataclass(frozen=True, kw_only=True)
class MembersPage(KeyedPage[Incident]):
    """The failures of a group, newest first.

    Args:
        group: the group; None without open failures.
        compared: the compared properties of this page's failures.
    """

    group: AlikeFailures | None
    compared: list[ComparedProperty]

    @property
    def has_processes(self) -> bool:
        """Whether a retry is possible; an event without a process is redelivered instead."""
        return any(row.instance_id for row in self.rows)


def members_page(fingerprint: str, before: str = "") -> MembersPage:
    """Return a page of the open failures of one cause."""
    rows = open_of_cause(fingerprint)
    newest = with_processes(rows).first()
    oldest = rows.order_by("-fingerprint", "pk").first()
    if newest is None or oldest is None:
        return MembersPage([], group=None, compared=[])
    group = AlikeFailures(newest, oldest, count_rows(rows, CAP))
    page = page_by_key(with_processes(rows), PAGE, before)
    compared = list(_compare(page.rows))
    return MembersPage(page.rows, page.older, group=group, compared=compared)


def common_words(messages: Iterable[str]) -> str:
    """Return the common words of messages of one cause, with "…" for those that differ.

    It is the first message if most of its words differ.
    """
    several = [message.split() for message in dict.fromkeys(messages)]
    first = several[0] if several else []
    same = reduce(_common, several, first)
    told = same if 2 * sum(one != "…" for one in same) >= len(first) else first
    return " ".join(told)


def _common(words: list[str], others: list[str]) -> list[str]:
    found, end = list[str](), (0, 0)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    for match in matcher.get_matching_blocks():
        if (match.a, match.b) != end:
            found.append("…")
        end = match.a + match.size, match.b + match.size
        found += words[match.a : end[0]]
    return found


def _compare(incidents: list[Incident]) -> Iterator[ComparedProperty]:
    """Yield the compared properties, equal ones first."""
    processes = {row.instance.pk: row.instance for row in incidents if row.instance}
    found = [_count_values(_("Message"), [row.said for row in incidents], ours=True)]
    if processes:
        versions = [str(one.definition.version) for one in processes.values()]
        steps = [row.step for row in incidents if row.step]
        found.append(_count_values(_("Version"), versions, ours=True))
        if len(set(steps)) > 1:
            found.append(_count_values(_("Step"), steps, ours=True))
    found += _compare_data(list(processes))
    yield from sorted(
        found, key=lambda one: (not one.ours, not one.same, one.all_differ)
    )


def _compare_data(keys: list[Any]) -> Iterator[ComparedProperty]:
    rows = ProcessInstance.objects.filter(pk__in=keys)
    rows = rows.annotate(size=Length(Cast("data", TextField())))
    rows = rows.filter(size__lte=LARGE).select_related("definition")
    small = list(rows.defer("definition__graph"))
    hidden = frozenset[str]().union(*(names_of(one.definition) for one in small))
    data = [one.data for one in small if isinstance(one.data, dict)]
    every = dict.fromkeys(name for one in data for name in one)
    # Comparing a secret field would reveal it.
    names = [name for name in every if name not in hidden][:FIELDS]
    for name in names:
        given = [one[name] for one in data if name in one]
        simple = [one for one in given if not isinstance(one, dict | list)]
        texts = ["—" if one in (None, "") else _value_text(one) for one in simple]
        if texts and set(texts) != {"—"}:
            yield _count_values(name, texts)


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _count_values(
    name: str, values: list[str], *, ours: bool = False
) -> ComparedProperty:
    counts = Counter(values).most_common()
    named = counts[:VALUES]
    others = sum(number for _value, number in counts[VALUES:])
    return ComparedProperty(name, named, others, len(values), ours)
