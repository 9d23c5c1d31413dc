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
    noop(
        "attempt %(number)s was cut off before its outcome was stored: whether %(step)s had its effect is not known. "
        "Retry it, or skip it with its result"
    ),
    noop("the worker died in each of %(number)s attempts"),
    noop("the worker died or was killed in each of %(number)s attempts"),
    noop(
        "the worker died or was killed in attempt %(number)s, maybe while it made the graph"
    ),
    noop(
        "the worker died or was killed in each of the last %(number)s attempts. See the workers' log for why, then "
        "resume it, or cancel the rest"
    ),
    noop(
        "not begun again: in each of the last %(number)s attempts the worker died or was killed, the last time "
        "with this one"
    ),
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
    noop("there is still no process that takes it"),
    noop("it belongs to no process"),
    noop("It would find another process than the page showed"),
    noop("it was sent before, and is not sent again"),
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
    noop("It is not escalated"),
    noop("that look is over: say again why"),
    noop("it has secret fields: whoever exports it must be allowed to have them shown"),
    noop("It has failed: retry it"),
    noop("It waits as designed"),
    noop("A worker is at it just now"),
    noop("It goes on by itself at %(time)s"),
    noop("extend it by 1 to %(most)s minutes"),
    noop("%(step)s has no deadline ahead"),
    noop("the deadline of %(step)s has passed already"),
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
    noop("This operation is %(cause)s by %(who)s"),
    noop("there is no bulk operation %(key)s"),
    noop("Wait for the end of this operation, or cancel the rest"),
    noop("None of it has failed again"),
    noop("Its items were removed, as it ended long ago"),
    noop("Somebody has marked or assigned these failures meanwhile: look again"),
    noop("Somebody has changed this view meanwhile: look again"),
    noop("this view is not there any more"),
    noop("There is another view of the name %(name)s"),
    noop("There are %(number)s views already: delete one first"),
    noop("Give the view a name of at most %(number)s characters"),
    noop("You have %(number)s tokens already: revoke one of them first"),
    noop("You have another token of the name %(name)s"),
    noop("Give the token a name of at most %(number)s characters"),
    noop("Have it expire after 1 to %(number)s days"),
    noop("This token is revoked already"),
    noop("there is no token %(number)s"),
    noop(
        "It was made at an earlier press, and is not shown again: revoke it, and make another"
    ),
    noop("None of this cause is open any more"),
    noop("It is not marked as handled"),
    noop(
        "Another one has failed of this cause since the page was loaded: look at it first"
    ),
    noop(
        "%(number)s groups are marked as handled: retry or cancel what is behind some of them first"
    ),
    noop("No step of it has failed"),
    noop("a repair is a list of at most %(number)s edits"),
    noop("there are two edits of the same: %(what)s"),
    noop("each edit says what it does: one of %(choices)s"),
    noop("the edit %(name)s is told by %(names)s"),
    noop("the target of %(name)s is a text of at most %(number)s characters"),
    noop("nothing is staged"),
    noop("the edit %(what)s cannot be made: %(why)s"),
    noop("processes start there: none waits in it"),
    noop("it stands there now"),
    noop("the process is found by it: it stays %(key)s"),
    noop("its stored data must be edited too: %(why)s"),
    noop("the process would have ended: nothing takes it"),
    noop("it could not be handled: %(why)s"),
    noop("the running code has not the step in which it stands"),
    noop(
        "a workflow keeps the input it started with: edit the results of its steps, or restart it"
    ),
    noop(
        "a workflow is where its graph leads: skip or redo steps, or resume it from a checkpoint"
    ),
    noop("a workflow issues no commands"),
    noop("%(step)s lets time pass: there is no result"),
    noop("%(step)s stands for all its elements: edit theirs, one by one"),
    noop("%(step)s has given no result in this visit"),
    noop("%(step)s has another result by now: its last one counts"),
    noop("%(step)s is not finished: its elements have no result to edit yet"),
    noop("%(step)s would be cancelled by another edit"),
    noop("the result of %(step)s is edited: one or the other"),
    noop("a repair of it is applied by a second person: propose it"),
    noop("this repair is not there any more: it was applied, declined or changed"),
    noop("whoever has proposed a repair does not apply it"),
    noop("it is proposed: take that back to change it"),
    noop("a repair has at most %(number)s KiB: apply what is staged"),
    noop("Several of its steps have failed: skip them one by one"),
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
    noop("Your account may not do this for %(name)s."),
    noop("What you may do has changed since the page was loaded: look at it again"),
    noop("The action was not carried out."),
    noop("The process has changed since the page was loaded."),
    noop("name the version by its number"),
    noop('name steps as {"old": "new"}, at most %(most)s of them'),
    noop(
        "no definition %(name)s version %(version)s in the running code; known: %(names)s"
    ),
    noop("version %(version)s of %(name)s is of another kind"),
    noop("it is on version %(version)s already"),
    noop("it was on version %(version)s before, with another input"),
    noop("it stands in no step"),
    noop("the command %(type)s is under way: wait until it is carried out, or skip it"),
    noop(
        "a worker is at %(step)s now: try again in a moment, or pause the process first"
    ),
    noop("a worker has just taken one of its steps: try again"),
    noop("version %(version)s has no step that %(step)s is mapped to"),
    noop(
        "nothing waits in %(place)s of version %(version)s: %(step)s cannot go on there"
    ),
    noop("its data is not of the form of the other version: %(why)s"),
    noop("the other version makes no graph of its input: %(why)s"),
    noop("its history cannot be told by the other version: %(why)s"),
    noop("%(step)s and %(other_step)s were visited, and would be one step: %(place)s"),
    noop(
        "the question of %(step)s is not answered yet, and has other answers there: %(choices)s"
    ),
    noop("%(step)s waits for the sub-process %(name)s, and runs none of it there"),
    noop("%(step)s was visited, and another step there has its name"),
    noop("the failure of %(step)s was caught, by a way that is none there"),
    noop("the result of %(step)s is not of the form that %(place)s gives: %(why)s"),
    noop("%(step)s is open, and version %(version)s has no step that it is mapped to"),
    noop("%(step)s waits for its branches, and %(place)s joins none"),
    noop("%(step)s is of another kind than %(place)s there"),
    noop("%(step)s was settled, and nothing leads to it in that order there"),
    noop("%(place)s would have begun after %(step)s, and never ran"),
    noop("%(place)s would have begun at the start, and never ran"),
    noop("%(step)s was passed over, and would have begun there"),
    noop("%(step)s was passed over, and would not have been there"),
    noop("%(step)s is open, and nothing would wait for it there any more"),
    noop("%(step)s has begun, and nothing would have led to it there"),
    noop("%(place)s is on a branch there that would have been passed over"),
    noop("%(step)s joins other branches there"),
    noop("branches of %(place)s have come together there, and nothing counts them"),
    noop("%(step)s waits for its branches, and none would have arrived there"),
    noop("The process cannot go over to the other version."),
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
