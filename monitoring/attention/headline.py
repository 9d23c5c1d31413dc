"""The headline of the first page: the most urgent problem, and the buttons that solve it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.attention.problem_counts import ProblemsByKind
from monitoring.attention.problems import URGENCY, Problem
from monitoring.base.graphs import labels_of
from monitoring.base.moments import clock
from monitoring.base.row_addresses import NO_CAUSE, begin_address
from monitoring.base.translation import translate
from monitoring.lists.failures.causes import why_no_retry
from monitoring.lists.failures.failure_group import common_words
from monitoring.lists.failures.failures import AlikeFailures
from monitoring.probes.machinery import Machinery
from monitoring.probes.pulse import Beat

ICONS = {"failed": "failed", "retry": "escalated", "waiting": "person"}
"""The icon of a headline, by its tone."""


def current_problems(
    machinery: Machinery,
    needs: ProblemsByKind,
    largest: AlikeFailures | None,
    redis: Beat,
    live: Beat,
    notices: Problem | None,
) -> list[Problem]:
    """Return all current problems, the most urgent first; of equally urgent ones the oldest first.

    Args:
        machinery: workers, queues and the sweep.
        needs: the problems of processes and events, by kind.
        largest: the largest group of failures.
        redis: whether Redis answers.
        live: whether the channel layer answers.
        notices: the problem of notices that are not delivered; None without any.
    """
    far = machinery.now + timedelta(days=1)
    found = [*_worker_problems(machinery), *_process_problems(needs, largest)]
    found += [notices] if notices is not None else []
    if redis.up is False:
        found.append(Problem("redis", since=redis.since))
    elif live.up is False:
        found.append(Problem("live", since=live.since))
    return sorted(found, key=lambda one: (URGENCY[one.name], one.since or far))


def _worker_problems(machinery: Machinery) -> Iterator[Problem]:
    """Yield the problems of workers; with living workers, the problems of queues and the sweep."""
    if not machinery.workers:
        yield Problem("no_worker", machinery.due, machinery.seen_at)
        return
    if machinery.unswept:
        yield Problem("no_sweep", since=machinery.swept_at)
    if gap := machinery.set_back:
        yield Problem("set_back", since=machinery.set_back_at, gap=gap)
    for queue in machinery.queues:
        late = "late" if queue.late(machinery.now) else ""
        if name := "unserved" if queue.unserved else late:
            yield Problem(name, queue.due, queue.oldest, names=(queue.name,))


def _process_problems(
    needs: ProblemsByKind, largest: AlikeFailures | None
) -> Iterator[Problem]:
    """Yield the problems of processes and events that can be the headline."""
    if largest is not None:
        every = needs["failures"]
        # The largest group was counted after the menu.
        yield replace(every, number=every.number or largest.number)
    for need in needs.values():
        if need.number and need.kind.sentence:
            yield need


@dataclass(frozen=True)
class ButtonLink:
    """A button with an address.

    Args:
        label: its text.
        address: its target.
        primary: whether it solves the problem.
        why: why this reader may not use it; "" if they may.
    """

    label: str
    address: str
    primary: bool = False
    why: str = ""


@dataclass(frozen=True)
class Headline:
    """The headline of the first page.

    Args:
        sentence: the problem, its number and its beginning.
        detail: more about it.
        since: when it began.
        last: when it happened last, for repeated failures.
        command: the command that solves a problem without a button.
        tone: the colour.
        links: the buttons.
        also: less urgent problems: the words, and the address of the list ("": none).
    """

    sentence: str
    detail: str = ""
    since: datetime | None = None
    last: datetime | None = None
    command: str = ""
    tone: str = "failed"
    links: list[ButtonLink] = field(default_factory=list)
    also: list[tuple[str, str]] = field(default_factory=list)

    @property
    def icon(self) -> str:
        return ICONS[self.tone]


def headline(
    found: list[Problem], largest: AlikeFailures | None, reader: Any
) -> Headline | None:
    """Return the headline; None without problems.

    Args:
        found: the problems, the most urgent first.
        largest: the group of failures for the headline when failures are the most urgent.
        reader: the user, for permissions.
    """
    if not found:
        return None
    first, *others = found
    also = [(one.words, one.address) for one in others]
    if first.name == "failures" and largest is not None:
        return replace(_group_headline(largest, reader), also=also)
    link = ButtonLink(_("Open them"), first.address, primary=True)
    return Headline(
        first.sentence,
        str(first.kind.detail),
        first.since,
        command=first.command,
        tone=first.kind.tone,
        links=[link] if first.address else [],
        also=also,
    )


def _group_headline(group: AlikeFailures, reader: Any) -> Headline:
    """Return the headline for the largest group of failures."""
    newest, definition = group.newest, group.definition
    error = newest.error.rpartition(".")[2] or newest.get_kind_display()
    detail = common_words([translate(one, definition) for one in group.messages])
    page = reverse("monitoring:failure-group", args=[newest.fingerprint or NO_CAUSE])
    links = [ButtonLink(_("Open the group"), page)]
    if definition:
        why = why_no_retry(newest, reader, definition.name)
        begin = begin_address("retry", newest.fingerprint)
        links.append(ButtonLink(_("Retry…"), begin, primary=True, why=why))
    return Headline(
        _failures_sentence(group, error),
        detail.removeprefix(f"{error}: "),
        group.oldest.opened_at,
        group.newest.opened_at,
        links=links,
    )


def _failures_sentence(group: AlikeFailures, error: str) -> str:
    newest, definition = group.newest, group.definition
    step = labels_of(definition).get(newest.step, newest.step) if definition else ""
    if step:
        sentence = ngettext(
            "%(number)s failure of %(name)s at “%(step)s” since %(since)s (%(error)s)",
            "%(number)s failures of %(name)s at “%(step)s” since %(since)s (%(error)s)",
            group.number.number,
        )
    else:
        sentence = ngettext(
            "%(number)s failure of %(name)s since %(since)s (%(error)s)",
            "%(number)s failures of %(name)s since %(since)s (%(error)s)",
            group.number.number,
        )
    return sentence % {
        "number": group.number,
        "name": definition.name if definition else newest.get_kind_display(),
        "step": step,
        "since": clock(group.oldest.opened_at),
        "error": error,
    }
