"""The engine's own texts in the reader's language, with steps and statuses by their names.

Workers and operators' actions write why something failed or was refused into the tables, in English and in the words
of the code: that is what logs, scripts and the audit have. A page shows it to whoever reads: a text of ours is found by
its form, translated, and filled with what it said. Texts of the application stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop

from monitoring.queries.graphs import labels_of
from monitoring.statuses import LOOKS, look
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Definition

KEPT = 2_000
"""Texts whose form is remembered."""

PLACE = re.compile(r"%\((\w+)\)s")
TYPED = re.compile(r"(?P<type>[A-Z]\w*): (?P<text>.+)", re.DOTALL)
"""An error as incidents name it."""

SENTENCES = (
    noop(
        "%(function)s left a database transaction open; what it wrote there is undone"
    ),
    noop(
        "%(function)s raised %(error)s, which ends programs; a step fails by raising an Exception"
    ),
    noop(
        "%(function)s kept its transaction waiting until the database ended it: do what takes long "
        "after the commit"
    ),
    noop("the sub-process %(name)s %(process)s was cancelled"),
    noop("the sub-process %(name)s %(process)s failed at %(step)s: %(why)s"),
    noop("the sub-process %(name)s %(process)s declined at %(step)s: %(why)s"),
    noop("the sub-process %(name)s %(process)s has lost its result: %(why)s"),
    noop(
        "the join at %(step)s needs %(needed)s of its %(all)s branches, but %(came)s came: "
        "%(others)s not taken"
    ),
    noop("no handler for the command %(type)s in the running code"),
    noop("no handler for %(type)s in the running code"),
    noop("the running code has no step %(step)s"),
    noop("nothing runs for %(step)s in the running code"),
    noop("%(name)s has no step %(step)s now"),
    noop("%(name)s is no sub-process in the running code"),
    noop("%(name)s is no longer a process manager"),
    noop("%(name)s is no longer a workflow"),
    noop("%(step)s lets time pass: there is no result to redo"),
    noop("%(step)s is done by somebody else: resume from a checkpoint before it"),
    noop("%(step)s is being redone already"),
    noop("%(step)s is not finished: retry or skip it"),
    noop("%(step)s has no result that could be redone"),
    noop("%(step)s has no result that could be redone: %(why)s"),
    noop("%(step)s was done %(number)s times and its result is still bad: %(why)s"),
    noop(
        "%(why)s. Its event is bad or gone too: have %(step)s sent another one, or skip it with "
        "its result; %(reader_step)s then goes on"
    ),
    noop(
        "%(why)s. A person gave it: decide %(step)s again, or skip it with its result; "
        "%(reader_step)s then goes on"
    ),
    noop(
        "the database refused in attempt %(number)s (%(why)s): whether %(step)s had its effect is "
        "not known. Retry it, or skip it with its result"
    ),
    noop(
        "the worker died in attempt %(number)s: whether %(step)s had its effect is not known. "
        "Retry it, or skip it with its result"
    ),
    noop("the worker died in each of %(number)s attempts"),
    noop("the worker died or was killed in each of %(number)s attempts"),
    noop("%(why)s, %(number)s times"),
    noop("it ran longer than it may, or did not report in time"),
    noop("the worker died or was killed"),
    noop("%(type)s is rejected in step %(step)s"),
    noop("%(type)s is not expected in step %(step)s"),
    noop("%(type)s was parked until the process had ended"),
    noop("%(type)s came after the process had ended"),
    noop("it names no process and carries no correlation key"),
    noop("there is no process %(process)s"),
    noop("there is no %(name)s with the key %(key)s"),
    noop("no process takes %(type)s: %(why)s"),
    noop("no process came for %(type)s in %(time)s: %(why)s"),
    noop(
        "there is already a live %(name)s with the key %(key)s, the process %(process)s: send it "
        "an event, wait for its end, or use another key"
    ),
    noop("there is nobody with the name %(who)s"),
    noop("this key was used for another action; reload the page"),
    noop("%(type)s was settled meanwhile: %(status)s"),
    noop("it belongs to no process"),
    noop("%(name)s takes no %(type)s in any step"),
    noop("say why, in at most %(number)s characters"),
    noop("there is no event %(key)s"),
    noop("%(type)s has found its process just now"),
    noop(
        "A worker has just moved this process on: look again, and press again if it is still wanted"
    ),
    noop("It is already being undone"),
    noop("The process has ended"),
    noop("The process is being undone: its finished steps no longer count"),
    noop("Only a workflow has steps that run by themselves"),
    noop("The process has ended: restart it as a new one"),
    noop("No step asks for a decision"),
    noop("%(step)s does not ask for a decision"),
    noop("It is paused already"),
    noop("It is not paused"),
    noop("No step is done yet"),
    noop("A process manager is started by an event: send that event again"),
    noop("The process is paused: resume it first"),
    noop("The process is still going on: cancel it first, or wait for its end"),
    noop("this is no input of %(name)s: %(why)s"),
    noop("a %(name)s with the key %(key)s has ended this moment: press again"),
    noop("there is no checkpoint %(number)s: the process is at revision %(revision)s"),
    noop(
        "checkpoint %(number)s was given up when the process was resumed from %(until)s: choose "
        "one until %(again)s, or from %(after)s on"
    ),
    noop("Its parent went on"),
    noop("Nothing has failed"),
    noop("No step is open"),
    noop("%(step)s has not begun: it waits for the steps before it, skip those"),
    noop(
        "%(step)s stands for all its elements: skip those that hold it up, one by one"
    ),
    noop("%(step)s is running, in attempt %(number)s: wait for its end"),
    noop("this is no result of %(step)s: %(why)s"),
    noop("No command has failed"),
    noop("%(type)s is %(status)s: only what has failed can be skipped"),
    noop("the process has no command %(key)s"),
    noop(
        "The process has changed since the page was loaded. It is now at revision %(revision)s, "
        "the page showed %(seen)s."
    ),
    noop(
        "The process has changed since the page was loaded: %(why)s. It is now at revision "
        "%(revision)s, the page showed %(seen)s."
    ),
    noop("%(who)s did %(action)s at %(time)s"),
    noop("an operator at %(time)s"),
    noop("%(type)s arrived at %(time)s"),
    noop("an event arrived at %(time)s"),
    noop("%(step)s was done at %(time)s"),
    noop("a step was done at %(time)s"),
    noop("%(cause)s at %(time)s"),
    noop("the process has no step run %(key)s"),
    noop("%(step)s is over meanwhile: %(status)s"),
    noop("the process cannot go on from %(step)s with this: %(why)s"),
    noop("its history cannot be read: %(why)s"),
    noop("the running code cannot read its history: nothing leads to %(step)s"),
    noop("the running code cannot read its history: nothing would be left to do"),
    noop("%(choice)s is not one of %(choices)s"),
    noop("the result of %(step)s: %(why)s"),
    noop("the result of %(step)s is bad"),
    noop("%(number)s (PROCESSION TRANSITIONS_LIMIT)"),
    noop("give at most %(number)s samples of 1 to %(most)s"),
    noop("let 1 to %(most)s be under way at once"),
    noop("begin 0.01 to %(most)s a second"),
    noop("let 1 to %(most)s with one business key be under way at once"),
    noop("stop at a percentage from 0 to below 100"),
    noop("This operation is %(cause)s"),
    noop("there is no bulk operation %(key)s"),
    noop("Wait for the end of this operation, or cancel the rest"),
    noop("None of it has failed again"),
    noop("%(action)s cannot be done to many at once"),
    noop("Say which first: an operation on everything is not begun"),
    noop("Nothing matches: look at the list again"),
    noop("more than the page could count: look at their number, then resume"),
    noop("more than were shown: look at their number, then resume"),
    noop("nothing matched any more"),
    noop("%(who)s has no account any more"),
    noop("the account of %(who)s was closed"),
    noop("the running code has no action %(name)s"),
    noop("%(who)s may not do this any more"),
    noop("%(number)s of %(all)s failed again, more than %(most)s percent"),
    noop("paused by %(who)s"),
    noop("cancelled by %(who)s"),
    noop("it is still failed"),
    noop("it is still not expected where its process stands"),
    noop("Your account may not do this."),
    noop("The action was not carried out."),
    noop("The process has changed since the page was loaded."),
    noop("The running code has no handler for this command."),
    noop("No case of a route fits, or a loop has come to its bound."),
    noop("Trying again cannot help."),
    noop("The step ran longer than its timeout, or did not report in time."),
    noop("The process made more transitions than it may."),
    noop("The worker died in every attempt."),
    noop("No process manager of this name and version is in the running code."),
)
"""Every text of the engine that people are shown. What stands in a place named why is such a text itself."""


class KnownText(NamedTuple):
    """A sentence, and what tells that a text is one."""

    sentence: str
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, sentence: str) -> KnownText:
        parts = PLACE.split(sentence)
        names = (f"(?P<{name}>.+?)" for name in parts[1::2])
        fixed = map(re.escape, parts[::2])
        joined = [
            text for pair in zip(fixed, [*names, ""], strict=True) for text in pair
        ]
        return cls(sentence, re.compile("".join(joined), re.DOTALL))


FORMS = sorted(
    map(KnownText.of, SENTENCES), key=lambda form: -len(PLACE.sub("", form.sentence))
)
"""Those that say most by themselves first."""


def spoken(text: str, definition: Definition | None = None) -> str:
    """A text of the engine for whoever reads it; any other as it is.

    Args:
        text: as it is stored or was raised.
        definition: of the process that it is about, whose steps have names.
    """
    return _spoken(text, labels_of(definition) if definition else {})


def _spoken(text: str, labels: Mapping[str, str]) -> str:
    known = _form_of(text)
    if known is not None:
        sentence, values = known
        said = {name: _value(name, value, labels) for name, value in values.items()}
        return gettext(sentence) % said
    typed = TYPED.fullmatch(text)
    if typed is None:
        return text
    return f"{typed['type']}: {_spoken(typed['text'], labels)}"


@lru_cache(KEPT)
def _form_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The sentence that a text is, and what it says in each of its places."""
    for sentence, pattern in FORMS:
        if found := pattern.fullmatch(text):
            return sentence, found.groupdict()
    return None


def _value(name: str, value: str, labels: Mapping[str, str]) -> str:
    if name.endswith("step"):
        return labels.get(value, value)
    if name == "why":
        return _spoken(value, labels)
    if name == "status" and value in LOOKS:
        return str(look(value).word)
    if name == "action" and value in OPERATIONS:
        return str(OPERATIONS[value].label)
    return gettext(value) if name == "cause" else value
