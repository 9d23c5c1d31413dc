"""The table of all kinds of problems that the console shows, the most urgent first, with words, lists and solutions.

The first page and the menu read this table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from monitoring.base.moments import clock, span
from monitoring.probes.machinery import start_command
from monitoring.queries.counts import Capped
from orchestrator.models import Status


@dataclass(frozen=True)
class ProblemKind:
    """One kind of problem.

    Args:
        tone: the colour: failed if it stops work, retry if it slows work, waiting if a person is to decide.
        words: the number in few words.
        sentence: the headline; "" if it is never the headline.
        detail: the consequence or the solution.
        label: the label of its number and its column.
        page: the URL name of its list; "" for none.
        query: the filters of that list.
        workers: whether more workers solve it; the page then shows the command that starts workers.
        always: whether a number of zero is shown too.
        person: whether it needs a person; the engine retries by itself.
    """

    tone: str
    words: Any = "%(names)s"
    sentence: Any = ""
    detail: Any = ""
    label: Any = ""
    page: str = ""
    query: tuple[tuple[str, str], ...] = ()
    workers: bool = False
    always: bool = True
    person: bool = True

    @property
    def urgent(self) -> bool:
        """Whether it is shown in red."""
        return self.tone == "failed"


KINDS = {
    "no_worker": ProblemKind(
        "failed",
        sentence=_("No worker lives: whatever is due stays undone."),
        detail=_("Start some; they go on where the others stopped."),
        workers=True,
    ),
    "unserved": ProblemKind(
        "failed",
        _("no worker serves %(names)s"),
        ngettext_lazy(
            "No worker serves %(names)s, where %(number)s is due since %(since)s.",
            "No worker serves %(names)s, where %(number)s are due since %(since)s.",
            "count",
        ),
        _("Start some for it."),
        page="stalled",
        workers=True,
    ),
    "no_sweep": ProblemKind(
        "failed",
        _("no sweep"),
        _("No worker has swept since %(since)s."),
        _(
            "What a lost worker held, and what was kept for later, stays where it is. Restart the workers."
        ),
        workers=True,
    ),
    "failures": ProblemKind(
        "failed",
        ngettext_lazy("%(number)s failure", "%(number)s failures", "count"),
        label=_("failed, need a person"),
        page="failures",
    ),
    "stalled": ProblemKind(
        "failed",
        ngettext_lazy("%(number)s stalled", "%(number)s stalled", "count"),
        ngettext_lazy(
            "%(number)s process stands still since %(since)s.",
            "%(number)s processes stand still, the first since %(since)s.",
            "count",
        ),
        _("It says that it goes on, but no work of it will be done."),
        _("stalled"),
        "stalled",
    ),
    "overdue": ProblemKind(
        "failed",
        ngettext_lazy("%(number)s overdue", "%(number)s overdue", "count"),
        ngettext_lazy(
            "%(number)s process is overdue since %(since)s.",
            "%(number)s processes are overdue, the first since %(since)s.",
            "count",
        ),
        _("Its deadline is over, and was not carried out."),
        _("overdue"),
        "instances",
        (("overdue", "1"),),
    ),
    "escalated": ProblemKind(
        "failed",
        ngettext_lazy("%(number)s escalated", "%(number)s escalated", "count"),
        ngettext_lazy(
            "%(number)s process was escalated at %(since)s.",
            "%(number)s processes were escalated, the first at %(since)s.",
            "count",
        ),
        _("A deadline, or somebody, calls for attention."),
        _("escalated"),
        "instances",
        (("escalated", "1"),),
        always=False,
    ),
    "notices": ProblemKind(
        "failed",
        ngettext_lazy(
            "%(number)s notice not delivered",
            "%(number)s notices not delivered",
            "count",
        ),
        ngettext_lazy(
            "%(number)s notice to %(names)s is not delivered since %(since)s.",
            "%(number)s notices to %(names)s are not delivered since %(since)s.",
            "count",
        ),
        _(
            "They do not hear of failures. The administration has the error of each attempt, under Notices."
        ),
    ),
    "redis": ProblemKind(
        "retry",
        _("Redis is silent"),
        _("Redis has not answered since %(since)s."),
        _("Workers look into the database instead, a little later; nothing is lost."),
    ),
    "set_back": ProblemKind(
        "retry",
        _("the database's clock went back"),
        _("The database's clock went back by %(gap)s at %(since)s."),
        _(
            "What was due goes on by itself. Sleeps and deadlines keep their moments, which come so much later."
        ),
        person=False,
    ),
    "late": ProblemKind(
        "retry",
        _("%(names)s is behind"),
        ngettext_lazy(
            "The queue %(names)s is behind: %(number)s is due, the oldest since %(since)s.",
            "The queue %(names)s is behind: %(number)s are due, the oldest since %(since)s.",
            "count",
        ),
        _("More workers would catch up sooner."),
        workers=True,
    ),
    "events": ProblemKind(
        "failed",
        ngettext_lazy(
            "%(number)s event that nothing took",
            "%(number)s events that nothing took",
            "count",
        ),
        ngettext_lazy(
            "Nothing took %(number)s event, which came at %(since)s.",
            "Nothing took %(number)s events, the first of which came at %(since)s.",
            "count",
        ),
        _("Redeliver it when its process is there, or discard it."),
        _("events that nothing took"),
        "events",
    ),
    "live": ProblemKind(
        "retry",
        _("pages are not live"),
        _("Open pages hear of nothing since %(since)s."),
        _("The channel layer is silent; pages look again every ten seconds."),
    ),
    "decisions": ProblemKind(
        "waiting",
        ngettext_lazy("%(number)s decision", "%(number)s decisions", "count"),
        ngettext_lazy(
            "%(number)s decision is wanted since %(since)s.",
            "%(number)s decisions are wanted, the first since %(since)s.",
            "count",
        ),
        label=_("decisions wanted"),
        page="decisions",
    ),
    "retrying": ProblemKind(
        "retry",
        ngettext_lazy("%(number)s retrying", "%(number)s retrying", "count"),
        label=_("retrying"),
        page="instances",
        query=(("status", str(Status.RETRYING)),),
        person=False,
    ),
    "paused": ProblemKind(
        "retry",
        ngettext_lazy("%(number)s paused", "%(number)s paused", "count"),
        label=_("paused"),
        page="instances",
        query=(("status", str(Status.PAUSED)),),
        always=False,
    ),
}

URGENCY = {name: place for place, name in enumerate(KINDS)}
"""The place of each kind in the table; the lowest is the most urgent."""

LISTED = [name for name, kind in KINDS.items() if kind.page and not kind.workers]
"""The kinds with a list of processes, failures or events, which are counted by definition."""


@dataclass(frozen=True)
class Problem:
    """The problems of one kind, of one definition or of all.

    Args:
        name: of the kind.
        number: the count, up to a cap.
        since: when the oldest began.
        definition: the definition's name; "" for all.
        names: of the affected queues, or of the recipients.
        listed: whether one list has all of them.
        gap: by how much a clock went back.
    """

    name: str
    number: Capped = field(default_factory=Capped)
    since: datetime | None = None
    definition: str = ""
    names: tuple[str, ...] = ()
    listed: bool = True
    gap: timedelta = timedelta(0)

    @property
    def kind(self) -> ProblemKind:
        return KINDS[self.name]

    @property
    def words(self) -> str:
        """The number in few words."""
        return str(self.kind.words % self._given)

    @property
    def sentence(self) -> str:
        return str(self.kind.sentence % self._given)

    @property
    def _given(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "count": self.number.number,
            "names": ", ".join(self.names),
            "since": clock(self.since) if self.since else "",
            "gap": span(self.gap),
        }

    @property
    def command(self) -> str:
        """The command that starts workers for it; "" if workers do not solve it."""
        named = [name for name in self.names if name != "default"]
        return start_command(*named[:1]) if self.kind.workers else ""

    @property
    def tone(self) -> str:
        """The colour of the number; a zero has none."""
        return self.kind.tone if self.number else "idle"

    @property
    def address(self) -> str:
        """The address of the list; "" if no single list has all of them."""
        if not (self.listed and self.kind.page):
            return ""
        given = dict(self.kind.query)
        if self.definition:
            given["definition"] = self.definition
        query = f"?{urlencode(given)}" if given else ""
        return f"{reverse(f'monitoring:{self.kind.page}')}{query}"
