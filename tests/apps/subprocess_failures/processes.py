"""Workflows whose sub-process, an errand, may fail, and what they have written for that case."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator import Permanent
from orchestrator.definition import (
    Failure,
    Workflow,
    ask,
    catch,
    each,
    join,
    run,
    sleep,
    start,
    step,
    then,
    undo,
)
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.exceptions import SubprocessDeclined, SubprocessFailed
from tests.apps.compensation import journal
from tests.services.declared import declared


@dataclass(frozen=True)
class Town:
    """The input: who does it where, or how many errands there are."""

    town: str = "Nara"
    errands: int = 1


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


def book(town: str) -> str:
    journal.do("book")
    return f"room in {town}"


def unbook(book: str) -> None:
    journal.undo("unbook", f"no {book}")


def go(town: str) -> str:
    journal.do("go", f"go to {town}")
    return town


def come_back(go: str) -> None:
    journal.undo("come_back", f"back from {go}")


def buy(go: str) -> str:
    journal.do(f"buy in {go}" if f"buy in {go}" in journal.faults else "buy")
    return f"bought in {go}"


class Errand(Workflow):
    """Nothing of it can be undone."""

    Input = Town
    flow = (then(go, step(buy, retries=0)),)


class Excursion(Workflow):
    """The same; one comes back when it declines or is cancelled."""

    Input = Town
    flow = (then(go, step(buy, retries=0)), undo(go, by=come_back))


errand = run(Errand, "errand")
excursion = run(Excursion, "excursion")


def report(errand: str) -> str:
    journal.do("report")
    return f"{errand}, reported"


def explain(error: Failure) -> str:
    journal.do("explain")
    child = error.child
    inside = f"{child.step}: {child.type}: {child.message}" if child else "-"
    return f"{error.step}, {error.type}, {error.attempts}: {inside}"


class Plain(Workflow):
    """Has nothing written for a failure."""

    Input = Town
    flow = (then(errand, report),)


class Outing(Workflow):
    """The same; the sub-process is undone by itself when it declines."""

    Input = Town
    flow = (excursion,)


class Caught(Workflow):
    """Another step explains."""

    Input = Town
    flow = (then(errand, report), catch(errand, error=SubprocessFailed, to=explain))


class CaughtBack(Workflow):
    """The same; what the sub-process has done is undone."""

    Input = Town
    flow = (excursion, catch(excursion, error=SubprocessFailed, to=explain))


class OnlyDeclined(Workflow):
    """Another step explains when the errand declines, however that is said."""

    Input = Town
    other = step(explain, "other")
    flow = (
        excursion,
        catch(excursion, error=SubprocessDeclined, to=explain),
        catch(excursion, error=Exception, to=other),
    )


class AsPermanent(Workflow):
    """The same, as a step of its own would be caught."""

    Input = Town
    flow = (errand, catch(errand, error=Permanent, to=explain))


class Booked(Workflow):
    """What was booked before is undone when the errand declines."""

    Input = Town
    flow = (then(book, errand, report), undo(book, by=unbook))


class BookedExcursion(Workflow):
    """The same, and the sub-process is undone by itself."""

    Input = Town
    flow = (then(book, excursion), undo(book, by=unbook))


# In a graph


def nap(town: str) -> str:
    journal.do("nap")
    return "rested"


def either(errand: str | None, nap: str | None) -> str:
    return errand or nap or ""


class Either(Workflow):
    """A nap will do."""

    Input = Town
    flow = (start(errand, nap), join(errand, nap, into=either, wait_for="any"))


sure = ask("sure", Answer)


def both(errand: str, sure: Answer) -> str:
    journal.do("both")
    return errand


class Hasty(Workflow):
    """A question is given up until the errand is tried again."""

    Input = Town
    flow = (start(errand, sure), join(errand, sure, into=both, on_failure="fail_fast"))


TOWNS = ("Kobe", "Nara", "Osaka", "Kyoto", "Uji")


def towns(errands: int) -> list[str]:
    return list(TOWNS[:errands])


def collect(errand: list[str]) -> list[str]:
    journal.do("collect")
    return [found for found in errand if found]


def in_each_town(do: Any, into: Any, **limits: Any) -> FlowRow:
    return each(towns, over="", do=do, into=into, item="town", **limits)


class Round(Workflow):
    """An errand in each town, two at once; one less is no trouble."""

    Input = Town
    flow = (in_each_town(errand, collect, window=2, tolerate=1),)


class StrictRound(Workflow):
    """All at once, and none may fail."""

    Input = Town
    flow = (in_each_town(errand, collect),)


night = sleep(timedelta(days=1), "night")


def wake(collect: list[str]) -> int:
    return len(collect)


class HastyRound(Workflow):
    """The same; a night beside them is given up when one fails."""

    Input = Town
    flow = (
        start(towns, night),
        each(towns, over="", do=errand, into=collect, item="town"),
        join(collect, night, into=wake, on_failure="fail_fast"),
    )


class CaughtRound(Workflow):
    """When one fails the others are given up."""

    Input = Town
    flow = (
        in_each_town(excursion, step(nap, "after")),
        catch(excursion, error=SubprocessFailed, to=explain),
    )


# One inside the other


class Middle(Workflow):
    """Has the errand as its part."""

    Input = Town
    flow = (errand,)


middle = run(Middle, "middle")


class Top(Workflow):
    """Has the middle as its part."""

    Input = Town
    flow = (middle,)


class TopCaught(Workflow):
    """The same, and explains its failure."""

    Input = Town
    flow = (middle, catch(middle, error=SubprocessFailed, to=explain))


class TopBooked(Workflow):
    """The same, and undoes what was booked."""

    Input = Town
    flow = (then(book, middle), undo(book, by=unbook))


WORKFLOWS = declared(globals())
