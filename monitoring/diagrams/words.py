"""The words of pictures in the reader's language. The words of definitions stay as they are."""

import re
from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop
from django.utils.translation import ngettext, pgettext

from orchestrator.definition.graph import Edge, Node

DELAY = (
    r"(?:[\d.]+ (?:day|hour|minute|second)s?)(?: [\d.]+ (?:day|hour|minute|second)s?)*"
)
"""A length of time, as definitions write it: "1 hour 30 minutes"."""

PHRASES = (
    (rf"(?P<delay>{DELAY})", "%(delay)s"),
    (rf"after (?P<delay>{DELAY})", noop("after %(delay)s")),
    (rf"at most (?P<delay>{DELAY})", noop("at most %(delay)s")),
    (
        r"until (?P<what>.+), at most (?P<number>\d+) times",
        noop("until %(what)s, at most %(number)s times"),
    ),
    (r"each of the result", noop("each of the result")),
    (r"each of (?P<what>.+)", noop("each of %(what)s")),
    (
        r"(?P<child>\S+) for each of the result",
        noop("%(child)s for each of the result"),
    ),
    (
        r"(?P<child>\S+) for each of (?P<what>.+)",
        noop("%(child)s for each of %(what)s"),
    ),
    (r"(?P<number>\d+) at once", noop("%(number)s at once")),
    (r"(?P<number>[\d.]+%?) may fail", noop("%(number)s may fail")),
    (r"for (?P<event>\w.*)", noop("for %(event)s")),
    (r"optional", noop("optional")),
    (r"else parked", noop("else parked")),
    (r"else ignored", noop("else ignored")),
    (r"else rejected", noop("else rejected")),
    (r"ignored when late", noop("ignored when late")),
)
"""The phrases that `orchestrator.definition` writes into graphs, and their translations."""

OF_ALL = re.compile(r"(?P<needed>\d+) of (?P<all>\d+)")


def gate_word(shape: str) -> str:
    """Return the tooltip of a gate or a terminal."""
    words = {
        "start": _("start"),
        "end": _("end"),
        "all": _("all branches"),
        "some": _("the branches whose condition holds"),
        "one": _("exactly one branch"),
    }
    return words[shape]


def line_word(kind: str) -> str:
    """Return the words for a line without a label."""
    words = {
        "case": _("on a condition"),
        "default": _("otherwise"),
        "repeat": _("once more"),
        "error": _("failed"),
        "deadline": _("too late"),
    }
    return words.get(kind, _("then"))


def way_text(source: str, target: str, label: str) -> str:
    """Return the tooltip of a line."""
    given = {"source": source, "target": target, "label": label}
    return _("From %(source)s to %(target)s: %(label)s") % given


def line_text(edge: Edge) -> str:
    """Return the label of a workflow's edge, on one line."""
    if edge.kind == "default" and edge.guard in ("", "otherwise"):
        return _("otherwise")
    if edge.kind == "error":
        return edge.event or _("failed")
    return phrase(edge.event if edge.kind == "deadline" else edge.guard)


def phrase(text: str) -> str:
    """Return a known phrase in the reader's language; names of the application stay as they are."""
    for form, said in PHRASES:
        if found := re.fullmatch(form, text):
            given = found.groupdict()
            if "delay" in given:
                given["delay"] = _delay(given["delay"])
            return _(said) % given
    return text


def detail_of(node: Node) -> str:
    """Return the detail below the name of a part, phrase by phrase."""
    phrases = node.detail.split(", ")
    if node.kind == "ask":
        phrases[0] = _(" or ").join(phrases[0].split(" or "))
    return ", ".join(map(phrase, phrases))


def _delay(text: str) -> str:
    """Return a length of time, each unit in the reader's language."""
    parts = re.findall(r"([\d.]+) (\w+?)s?\b", text)
    return " ".join(
        _units(number, 1 if number == "1" else 2)[unit] for number, unit in parts
    )


def _units(number: str, many: int) -> dict[str, str]:
    said = {
        "day": ngettext("%(n)s day", "%(n)s days", many),
        "hour": ngettext("%(n)s hour", "%(n)s hours", many),
        "minute": ngettext("%(n)s minute", "%(n)s minutes", many),
        "second": ngettext("%(n)s second", "%(n)s seconds", many),
    }
    return {unit: text % {"n": number} for unit, text in said.items()}


def more_text(number: int) -> str:
    """Return the text for commands that a label has no room for."""
    return _("%(number)d more") % {"number": number}


def join_text(join: str) -> str:
    """Return the number of branches that a join waits for, and whether it fails fast."""
    return ", ".join(_join_part(part) for part in join.split(", ")) if join else ""


def _join_part(part: str) -> str:
    if number := OF_ALL.fullmatch(part):
        return _("%(needed)s of %(all)s") % number.groupdict()
    words = {
        "any": pgettext("branches", "any"),
        "every": pgettext("branches", "every"),
        "fail fast": _("fail fast"),
    }
    return words.get(part, part)


def undo_text(function: str) -> str:
    """Return the text of a step with an undo function."""
    return _("undone by %(function)s") % {"function": function}


def group_text(number: int, how: str) -> str:
    """Return the text of a group of steps in a row ("run"), side by side ("siblings") or of another kind."""
    words = {
        "run": ngettext("%(n)d step in a row", "%(n)d steps in a row", number),
        "siblings": ngettext(
            "%(n)d step side by side", "%(n)d steps side by side", number
        ),
    }
    plain = ngettext("%(n)d step", "%(n)d steps", number)
    return words.get(how, plain) % {"n": number}


def levels_label(span: str) -> str:
    """Return the label of a part that stands for the steps of one or more levels: "3", or "3-5"."""
    first, _dash, last = span.partition("-")
    if not last:
        return _("Level %(first)s") % {"first": first}
    return _("Level %(first)s to %(last)s") % {"first": first, "last": last}


def escalate_text() -> str:
    """Return the text of a transition that escalates."""
    return _("escalate")


def notify_text(recipients: Iterable[str]) -> str:
    """Return the text of a deadline that notifies recipients."""
    return _("notify %(who)s") % {"who": ", ".join(recipients)}


def assign_text(person: str) -> str:
    """Return the text of a deadline that assigns the process to a person."""
    return _("assign to %(who)s") % {"who": person}
