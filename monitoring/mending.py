"""What the first page says of what is wrong, and the button that leads to what mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.moments import clock
from monitoring.places import NO_CAUSE, begin_of
from monitoring.queries.attention import KINDS
from monitoring.queries.failure_group import alike
from monitoring.queries.failures import AlikeFailures
from monitoring.queries.graphs import labels_of
from monitoring.queries.headline import Problem, Urgency
from monitoring.spoken import spoken
from orchestrator.engine.operations import OPERATIONS, forbidden_in_bulk


@dataclass(frozen=True)
class ButtonLink:
    """A button that leads somewhere.

    Args:
        label: what stands on it.
        address: where it leads.
        primary: whether it is the one that mends what is wrong.
        why: why it cannot be done by this reader; "" if it can.
    """

    label: str
    address: str
    primary: bool = False
    why: str = ""


@dataclass(frozen=True)
class Headline:
    """The sentence with which the page begins.

    Args:
        sentence: what is wrong, since when, and how much.
        detail: more about it.
        since: when it began.
        last: when it happened last, where it happens again and again.
        command: what to type where no button can mend it.
        tone: its colour.
        icon: what stands before it.
        links: the buttons.
        also: what else is wrong, less urgent: what it is, and where it is listed ("": nowhere).
    """

    sentence: str
    detail: str = ""
    since: datetime | None = None
    last: datetime | None = None
    command: str = ""
    tone: str = "failed"
    icon: str = "failed"
    links: list[ButtonLink] = field(default_factory=list)
    also: list[tuple[str, str]] = field(default_factory=list)


def headline(
    found: list[Problem], largest: AlikeFailures | None, reader: Any
) -> Headline | None:
    """What the page begins with; None when all is well.

    Args:
        found: what is wrong, the most urgent first.
        largest: the group of failures that is meant where they are the most urgent.
        reader: who may do what.
    """
    if not found:
        return None
    first, *others = found
    told = _of_failures(largest, reader) if _is_failures(first, largest) else None
    sentence, detail, command, links = told or _of(first)
    group = largest if told else None
    return Headline(
        sentence,
        detail,
        group.oldest.opened_at if group else first.since,
        group.newest.opened_at if group else None,
        command,
        tone=_tone(first),
        icon=ICONS[_tone(first)],
        links=links,
        also=[(_short(one), one.address) for one in others],
    )


ICONS = {"failed": "failed", "retry": "escalated", "waiting": "person"}


def _tone(problem: Problem) -> str:
    if problem.urgency == Urgency.DECISIONS:
        return "waiting"
    return "failed" if problem.alarming else "retry"


Told = tuple[str, str, str, list[ButtonLink]]
"""Sentence, detail, command, buttons."""


def _is_failures(first: Problem, largest: AlikeFailures | None) -> bool:
    return first.urgency == Urgency.FAILURES and largest is not None


def _of_failures(group: AlikeFailures | None, reader: Any) -> Told:
    assert group is not None  # noqa: S101  the caller has looked
    newest, definition = group.newest, group.definition
    given = {
        "number": group.number,
        "name": definition.name if definition else newest.get_kind_display(),
        "step": labels_of(definition).get(newest.step, newest.step)
        if definition
        else "",
        "since": clock(group.oldest.opened_at),
        "error": newest.error.rpartition(".")[2] or newest.get_kind_display(),
    }
    all_of_them = group.number.number
    if definition and newest.step:
        sentence = ngettext(
            "%(number)s failure of %(name)s at “%(step)s” since %(since)s (%(error)s)",
            "%(number)s failures of %(name)s at “%(step)s” since %(since)s (%(error)s)",
            all_of_them,
        )
    else:
        sentence = ngettext(
            "%(number)s failure of %(name)s since %(since)s (%(error)s)",
            "%(number)s failures of %(name)s since %(since)s (%(error)s)",
            all_of_them,
        )
    detail = alike([spoken(message, definition) for message in group.messages])
    detail = detail.removeprefix(f"{given['error']}: ")
    page = reverse("monitoring:failure-group", args=[newest.fingerprint or NO_CAUSE])
    links = [ButtonLink(_("Open the group"), page)]
    if definition:
        why = forbidden_in_bulk(OPERATIONS["retry"], reader, definition.name)
        begin = begin_of("retry", newest.fingerprint)
        links.append(ButtonLink(_("Retry…"), begin, True, why))
    return sentence % given, detail, "", links


def _of(problem: Problem) -> Told:
    words = WORDS[problem.urgency]
    given = {
        "number": problem.number,
        "names": ", ".join(problem.names),
        "since": clock(problem.since) if problem.since else "",
    }
    links = (
        [ButtonLink(_("Open them"), problem.address, True)] if problem.address else []
    )
    sentence = str(words.sentence(problem.number.number) % given)
    return sentence, str(words.detail()), words.command(problem), links


@dataclass(frozen=True)
class Words:
    """What is said of one kind of problem."""

    sentence: Callable[[int], str]
    detail: Callable[[], str] = lambda: ""
    command: Callable[[Problem], str] = lambda _problem: ""


def _work(problem: Problem) -> str:
    named = [name for name in problem.names if name != "default"]
    return f"manage.py work --queue {named[0]}" if named else "manage.py work"


WORDS = {
    Urgency.NO_WORKER: Words(
        lambda _n: _("No worker lives: whatever is due stays undone."),
        lambda: _("Start some; they go on where the others stopped."),
        _work,
    ),
    Urgency.UNSERVED: Words(
        lambda n: ngettext(
            "No worker serves %(names)s, where %(number)s is due since %(since)s.",
            "No worker serves %(names)s, where %(number)s are due since %(since)s.",
            n,
        ),
        lambda: _("Start some for it."),
        _work,
    ),
    Urgency.NO_SWEEP: Words(
        lambda _n: _("Nobody has swept since %(since)s."),
        lambda: _(
            "What a lost worker held, and what was kept for later, stays where it is. Restart the workers."
        ),
        _work,
    ),
    Urgency.STALLED: Words(
        lambda n: ngettext(
            "%(number)s process stands still since %(since)s.",
            "%(number)s processes stand still, the first since %(since)s.",
            n,
        ),
        lambda: _("It says that it goes on, but no work of it will be done."),
    ),
    Urgency.OVERDUE: Words(
        lambda n: ngettext(
            "%(number)s process is overdue since %(since)s.",
            "%(number)s processes are overdue, the first since %(since)s.",
            n,
        ),
        lambda: _("Its deadline is over, and was not carried out."),
    ),
    Urgency.ESCALATED: Words(
        lambda n: ngettext(
            "%(number)s process was escalated at %(since)s.",
            "%(number)s processes were escalated, the first at %(since)s.",
            n,
        ),
        lambda: _("A deadline, or somebody, calls for attention."),
    ),
    Urgency.REDIS: Words(
        lambda _n: _("Redis has not answered since %(since)s."),
        lambda: _(
            "Workers look into the database instead, a little later; nothing is lost."
        ),
    ),
    Urgency.LATE: Words(
        lambda n: ngettext(
            "The queue %(names)s is behind: %(number)s is due, the oldest since %(since)s.",
            "The queue %(names)s is behind: %(number)s are due, the oldest since %(since)s.",
            n,
        ),
        lambda: _("More workers would catch up sooner."),
        _work,
    ),
    Urgency.EVENTS: Words(
        lambda n: ngettext(
            "Nothing took %(number)s event, which came at %(since)s.",
            "Nothing took %(number)s events, the first of which came at %(since)s.",
            n,
        ),
        lambda: _("Redeliver it when its process is there, or discard it."),
    ),
    Urgency.LIVE: Words(
        lambda _n: _("Open pages hear of nothing since %(since)s."),
        lambda: _("The channel layer is silent; pages look again every ten seconds."),
    ),
    Urgency.DECISIONS: Words(
        lambda n: ngettext(
            "%(number)s decision is wanted since %(since)s.",
            "%(number)s decisions are wanted, the first since %(since)s.",
            n,
        ),
    ),
}


def _short(problem: Problem) -> str:
    """A problem in few words, where another is more urgent."""
    kind = KINDS.get(problem.name)
    if kind is not None:
        return str(
            kind.words % {"number": problem.number, "count": problem.number.number}
        )
    names = ", ".join(problem.names)
    words = {
        Urgency.NO_SWEEP: _("no sweep"),
        Urgency.REDIS: _("Redis is silent"),
        Urgency.LATE: _("%(names)s is behind") % {"names": names},
        Urgency.LIVE: _("pages are not live"),
    }
    return words.get(problem.urgency, names)
