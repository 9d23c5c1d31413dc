"""Steps, elements of a map and commands that wait outside."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import (
    AsyncStepContext,
    Command,
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    during,
    each,
    step,
    then,
    undo,
    when,
)
from tests.apps.waiting_calls.ways import note, seen, spend, spend_thread


@dataclass(frozen=True)
class Told:
    """What a call is told."""

    name: str
    how: str = ""


async def call(name: str, how: str) -> str:
    """One call."""
    return await spend(name, how)


class OneCall(Workflow):
    """One step that waits outside."""

    Input = Told
    flow = (step(call, retries=2, backoff=0.01),)


async def look_around(name: str, how: str) -> str:
    """Says what it meets in its worker."""
    await spend(name, how)
    return await seen()


class Looks(Workflow):
    """One that says what it meets."""

    Input = Told
    flow = (step(look_around, retries=1, backoff=0.01),)


class ShortCall(Workflow):
    """One that may not take long."""

    Input = Told
    flow = (step(call, retries=1, timeout=0.5),)


class OnceOnly(Workflow):
    """One that must not be made twice."""

    Input = Told
    flow = (step(call, idempotent=False),)


async def reporting(name: str, context: AsyncStepContext) -> int:
    """Says how far it is, and goes on from where it was."""
    done: int = context.saved or 0
    context.progress(done, 3, f"page {done}")
    if done < 2:
        await context.save(done + 1)
        raise ValueError("another attempt goes on")
    assert await context.still_mine()
    context.progress(3, 3, "page 3")
    return done


class Reports(Workflow):
    """One that reports, and saves what it has."""

    Input = Told
    flow = (step(reporting, retries=3, backoff=0.01),)


async def silent(name: str, how: str, context: AsyncStepContext) -> str:
    """Says once that it is alive."""
    if context.attempt == 1:
        context.progress(1, 2)
        return await spend(name, how)
    return name


class Silent(Workflow):
    """One that must be heard of again and again."""

    Input = Told
    flow = (step(silent, heartbeat=0.5, retries=1),)


async def tell_late(name: str, context: AsyncStepContext) -> str:
    """Says something when a gate is open, and then waits for ever, the first time only."""
    if context.attempt == 1:
        await spend(name, "gate go")
        context.progress(1, 2)
        await spend(name, "gate never")
    return name


class TellsLate(Workflow):
    """One whose time is over while what it said is not stored."""

    Input = Told
    flow = (step(tell_late, timeout=3, retries=1, backoff=0.01),)


def prepare(name: str) -> str:
    """A plain step."""
    return name.upper()


async def ask_model(prepare: str, how: str) -> str:
    return await spend(prepare, how)


async def ask_again(ask_model: str) -> str:
    return f"{ask_model}!"


def conclude(ask_again: str) -> str:
    """Another plain step."""
    return f"{ask_again}!"


class Mixed(Workflow):
    """Plain steps and such that wait, one after another."""

    Input = Told
    flow = (then(prepare, ask_model, ask_again, conclude),)


@dataclass(frozen=True)
class Elements:
    """What the elements of a map are told."""

    many: list[str]
    how: str = ""


def names(many: list[str]) -> list[str]:
    """The elements of a map."""
    return many


async def element(item: str, how: str) -> str:
    """One element."""
    return await spend(item, how)


def together(element: list[str]) -> int:
    """The join."""
    return len(element)


class ManyCalls(Workflow):
    """A map whose elements wait outside."""

    Input = Elements
    flow = (each(names, over="", do=element, into=together),)


class FewCalls(Workflow):
    """A map of which only so many elements may be in flight at once, of all processes."""

    Input = Elements
    flow = (each(names, over="", do=step(element, concurrency=3), into=together),)


def in_thread(name: str, how: str) -> str:
    """One that blocks."""
    return spend_thread(name, how)


def thread_element(item: str, how: str) -> str:
    """One element that blocks."""
    return spend_thread(item, how)


class FewThreads(Workflow):
    """A map whose elements block two threads."""

    Input = Elements
    flow = (
        each(
            names, over="", do=step(thread_element, "element", threads=2), into=together
        ),
    )


class InThread(Workflow):
    """One that blocks a thread of its own, beside another."""

    Input = Told
    flow = (step(in_thread, threads=2, retries=1),)


class SameName(Workflow):
    """One whose step has the name of that which blocks a thread."""

    Input = Told
    flow = (step(call, "in_thread"),)


class ShortThread(Workflow):
    """One that may not take long."""

    Input = Told
    flow = (step(in_thread, "short_thread", threads=2, timeout=0.5, retries=1),)


def count_pages(name: str, context: StepContext) -> int:
    """Says how far it is, from a thread."""
    context.progress(2, 2, "page 2")
    context.save(context.attempt)
    return context.attempt if context.still_mine() else 0


class ThreadReports(Workflow):
    """One that reports from a thread."""

    Input = Told
    flow = (step(count_pages, threads=1),)


async def book(name: str) -> str:
    return name


async def give_up(name: str) -> None:
    note("undone", name)


async def refuse(book: str, how: str) -> None:
    await spend(book, how)


class Undone(Workflow):
    """One whose first step is undone, by a call too."""

    Input = Told
    flow = (then(book, step(refuse, retries=0)), undo(book, by=give_up))


class Wanted(Event):
    name: str
    how: str = ""


class CallOutside(Command):
    name: str
    how: str


class CallInThread(Command):
    name: str
    how: str


class Called(Event):
    name: str


class Calling(ProcessManager):
    """Two commands after the commit that wait outside."""

    class Step(StrEnum):
        NEW = "New"
        WANTED = "Wanted"
        CALLED = "Called"

    @dataclass(frozen=True)
    class Data:
        name: str
        how: str

    correlation = "name"

    transitions = (
        during(
            Step.NEW, when(Wanted).issue(CallInThread, CallOutside).go_to(Step.WANTED)
        ),
        during(Step.WANTED, when(Called).go_to(Step.CALLED)),
    )
