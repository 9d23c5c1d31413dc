"""The search for definitions and processes by a part of a name, of a summary or of an id.

Functions take the names of the definitions that the reader may see; None for all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Self
from uuid import UUID

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.lists.search_hits import (
    SHORTEST,
    SHOWN,
    SearchHit,
    SearchHits,
    process_hit,
)
from monitoring.queries.processes import fetch_in_order
from orchestrator.models import Definition, ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

LOOKED_AT = 10_000
"""The newest processes whose summaries are searched."""

SPELLED = 3_000
"""The newest processes whose keys and words are compared one by one with the text."""

LONGEST, MOST_MORE, SIMILAR = 32, 2, 0.75
"""The maximum length of a similar word, its maximum difference in length, and the ratio of equal characters."""

BEGINNING = re.compile("[0-9a-f]{6,31}")
"""The beginning of an id, without its hyphens: shorter ones begin the ids of many processes."""


def definitions_named(text: str, names: Collection[str] | None) -> SearchHits:
    """Return the definitions whose names contain a text."""
    rows = Definition.objects.order_by("name").values_list("name", flat=True)
    if names is not None:
        rows = rows.filter(name__in=names)
    found = []
    if len(text) >= SHORTEST:
        found = list(rows.filter(name__icontains=text).distinct()[: SHOWN + 1])
    shown = [
        SearchHit(reverse("monitoring:definition", args=[name]), name)
        for name in found[:SHOWN]
    ]
    return SearchHits(_("Definitions"), shown=shown, more=len(found) > SHOWN)


def with_id_from(text: str, names: Collection[str] | None) -> SearchHits:
    """Return the processes whose ids begin with a text."""
    digits, found = text.lower().replace("-", ""), list[ProcessInstance]()
    if BEGINNING.fullmatch(digits):
        first, last = (UUID(digits.ljust(32, fill)) for fill in "0f")
        rows = ProcessInstance.objects.filter(pk__range=(first, last)).order_by("pk")
        found = _rows(rows if names is None else rows.filter(name__in=names))
    return _hits(_("Processes whose id begins so"), found)


@dataclass(frozen=True)
class NewestProcesses:
    """The key, the name of the definition, the business key and the summary of the newest processes."""

    rows: Sequence[tuple[UUID, str, str, str]]

    @classmethod
    def read(cls, names: Collection[str] | None) -> Self:
        """Read them: those of some definitions among the newest of all."""
        columns = ("pk", "name", "correlation_key", "summary")
        rows = ProcessInstance.objects.newest_first().values_list(*columns)
        some = rows[:LOOKED_AT]
        return cls([row for row in some if names is None or row[1] in names])

    def with_summary(self, text: str) -> SearchHits:
        """Return the processes whose summaries contain a text."""
        wanted, keys = text.casefold(), list[UUID]()
        if len(text) >= SHORTEST:
            keys = [pk for pk, *_, said in self.rows if wanted in said.casefold()]
        kind = _("Processes with these words in their summary")
        note = _("Summaries are looked for among the newest 10,000 processes.")
        return _hits(kind, _with_keys(keys), note)

    def spelled_alike(self, text: str) -> SearchHits:
        """Return the processes of which the key, or a word of the summary, is spelled nearly as a text."""
        word, having = text.casefold(), defaultdict[str, list[UUID]](list)
        if SHORTEST <= len(word) <= LONGEST and not BEGINNING.fullmatch(word):
            for pk, _name, key, said in self.rows[:SPELLED]:
                for one in {key.casefold(), *said.casefold().split()}:
                    if abs(len(one) - len(word)) <= MOST_MORE:
                        having[one].append(pk)
        near = get_close_matches(word, having, SHOWN, SIMILAR)
        keys = dict.fromkeys(pk for one in near for pk in having[one])
        kind = _("Processes with a similar key, or a similar word in their summary")
        note = _("They are looked for among the newest 3,000 processes.")
        return replace(_hits(kind, _with_keys([*keys]), note), similar=True)


def _with_keys(keys: Sequence[UUID]) -> list[ProcessInstance]:
    """Return the first processes with these keys, in their order."""
    rows = _shown_columns(ProcessInstance.objects.all())
    return fetch_in_order(rows, keys[: SHOWN + 1])


def _rows(rows: ProcessInstanceQuerySet) -> list[ProcessInstance]:
    return list(_shown_columns(rows)[: SHOWN + 1])


def _shown_columns(rows: ProcessInstanceQuerySet) -> ProcessInstanceQuerySet:
    return rows.select_related("definition").defer("data", "definition__graph")


def _hits(
    kind: Promise, found: list[ProcessInstance], note: Promise | str = ""
) -> SearchHits:
    shown = [process_hit(row) for row in found[:SHOWN]]
    return SearchHits(kind, shown=shown, more=len(found) > SHOWN, note=note)
