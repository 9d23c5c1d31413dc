"""Steps whose time, worker or stored result is lost."""

import os
import time

from django.db import OperationalError

from orchestrator import CorruptInput
from orchestrator.definition import (
    StepContext,
    Workflow,
    ask,
    case,
    each,
    route,
    run,
    start,
    step,
    then,
    wait,
)
from tests.apps.patterns.ledger import note, noted
from tests.apps.patterns.limits import give
from tests.apps.patterns.patterns import Answer, Approved, FanOut, How, Number, Numbers

LONG = 600  # seconds that a step hangs


PAGES = 8


def scan(context: StepContext) -> int:
    """Scans page after page, each once, and hangs in the middle of its first attempt."""
    for page in range(context.saved or 0, PAGES):
        if page == PAGES // 2 and context.attempt == 1:
            time.sleep(LONG)
        note(f"page {page}")
        context.save(page + 1)
    return PAGES


class Scanning(Workflow):
    """A long step that saves how far it is."""

    flow = (step(scan, timeout=3.0),)


HEARTBEAT = 2.0
"""Seconds; so many that a crowded machine keeps no step from reporting in time that does so all the time."""


def fall_silent(context: StepContext) -> int:
    """Reports for longer than its heartbeat, then says nothing any more; in its second attempt nothing at all."""
    note(f"attempt {context.attempt}")
    if context.attempt == 1:
        ends = time.monotonic() + 1.2 * HEARTBEAT
        while time.monotonic() < ends:
            context.progress(1)
            time.sleep(0.1)
        note("falls silent")
    time.sleep(LONG)
    return 0


class Silent(Workflow):
    """A step that must report."""

    flow = (step(fall_silent, retries=1, heartbeat=HEARTBEAT),)


def pay(how: str) -> str:
    note("paid")
    if how == "die":
        os._exit(1)
    if how == "close":
        os.closerange(3, 1024)
    if how == "hang":
        time.sleep(LONG)
    return "paid"


def be_refused(how: str, context: StepContext) -> str:
    """Meets a database that refuses at first."""
    note("refused")
    if noted()["refused"] < 3:
        raise OperationalError("database is locked")
    return f"attempt {context.attempt}"


class Refused(Workflow):
    """A step that the database refuses, and that may run again."""

    Input = How
    flow = (step(be_refused),)


class RefusedOnce(Workflow):
    """The same, of a step that must not run twice."""

    Input = How
    flow = (step(be_refused, idempotent=False),)


def be_locked(how: str) -> str:
    """Raises, or leads to, what looks as if the database refused, every time."""
    note("locked")
    if how == "step":
        raise OperationalError("database is locked")
    return how


def is_locked(how: str) -> bool:
    if how == "predicate":
        raise OperationalError("database is locked")
    return False


def unlocked(be_locked: str) -> str:
    return be_locked


def after_all(be_locked: str) -> str:
    return be_locked


class Locked(Workflow):
    """A step whose attempt never passes, because of itself or of what follows."""

    Input = How
    flow = (
        start(step(be_locked, retries=1)),
        route(be_locked, case(is_locked, to=unlocked), otherwise=after_all),
    )


class Paying(Workflow):
    """A step that must not run twice when nobody knows whether it had its effect."""

    Input = How
    flow = (step(pay, idempotent=False),)


HALF = 6


def stage_of(item: int) -> int:
    """One of many elements; those of the second half wait until somebody lets them go on."""
    note(f"element {item}")
    time.sleep(0.03)
    while item >= HALF and not noted()["go on"]:
        time.sleep(0.02)
    return item


def spread(s3: int) -> list[int]:
    return list(range(2 * HALF))


def finish(stage_of: list[int]) -> int:
    note("finish")
    return len(stage_of)


def s1(number: int) -> int:
    note("s1")
    return number


def s2(s1: int) -> int:
    note("s2")
    return s1


def s3(s2: int) -> int:
    note("s3")
    return s2


class Journey(Workflow):
    """A few steps and a fan-out, each of which leaves a trace."""

    Input = Number
    flow = (then(s1, s2, s3, spread), each(spread, over="", do=stage_of, into=finish))


# Results that go bad before they are read


def weigh(number: int) -> int:
    note("weigh")
    return number


def pause(weigh: int) -> int:
    note("pause")
    return weigh


hold = step(pause, "hold", queue="press")


def report(weigh: int, hold: int) -> int:
    note("report")
    return weigh


def again(weigh: int) -> int:
    note("again")
    return weigh


def close(report: int, again: int) -> int:
    return report + again


class Reading(Workflow):
    """One result that three steps read, one of them before it can go bad and two after."""

    Input = Number
    flow = (
        then(weigh, hold, report),
        then(hold, again),
        then(report, close),
        then(again, close),
    )


def wait_a_while(number: int = 0) -> int:
    return number


def notice(item: int) -> int:
    note(f"notice {item}")
    return item


hold_notices = step(wait_a_while, "hold_notices", queue="press")


def sum_noticed(notice: list[int]) -> int:
    return sum(notice)


class Summing(Workflow):
    """A map whose results are read only after a while."""

    Input = Numbers
    flow = (
        start(give),
        each(give, over="", do=notice, into=hold_notices),
        then(hold_notices, sum_noticed),
    )


delegate = run(FanOut, "delegate")
hold_delegate = step(wait_a_while, "hold_delegate", queue="press")


def after_hold(delegate: int) -> int:
    return delegate


class Delegating(Workflow):
    """A sub-process whose result is read only after a while."""

    Input = Numbers
    flow = (then(delegate, hold_delegate, after_hold),)


hold_event = step(wait_a_while, "hold_event", queue="press")


def after_event(wait_for_approved: Approved) -> str:
    return wait_for_approved.by


class Told(Workflow):
    """An event that is read only after a while."""

    flow = (then(wait(Approved), hold_event, after_event),)


def after_answer(answer: Answer) -> Answer:
    return answer


class Answered(Workflow):
    """A decision that is read only after a while."""

    flow = (then(ask("answer", choices=Answer), hold_event, after_answer),)


def disbelieve(wait_for_approved: Approved) -> str:
    if wait_for_approved.by == "Eve":
        raise CorruptInput("wait_for_approved", "Eve may not approve")
    return wait_for_approved.by


class Disbelieving(Workflow):
    """A step that does not believe an event."""

    flow = (then(wait(Approved), disbelieve),)
