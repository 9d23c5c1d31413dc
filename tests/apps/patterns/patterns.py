"""A workflow for each pattern of the language. The steps only compute, so that every outcome is known."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator import Permanent
from orchestrator.definition import (
    Event,
    Failure,
    Workflow,
    ask,
    case,
    catch,
    each,
    fork,
    join,
    needs,
    repeat,
    route,
    run,
    start,
    step,
    then,
    wait,
)
from orchestrator.definition.workflow.rows import FlowRow


@dataclass(frozen=True)
class Number:
    """The input of most of these workflows."""

    number: int = 1


@dataclass(frozen=True)
class How:
    """How a step misbehaves."""

    how: str = ""


# Sequence, parallel, DAG


def add_one(number: int) -> int:
    return number + 1


def double(add_one: int) -> int:
    return add_one * 2


def tell(double: int) -> str:
    return f"it is {double}"


class Chain(Workflow):
    """One after another."""

    Input = Number
    flow = (then(add_one, double, tell),)


def negative(add_one: int) -> int:
    return -add_one


def together(double: int, negative: int) -> list[int]:
    return [double, negative]


class Parallel(Workflow):
    """Two branches at once, and one step after both."""

    Input = Number
    flow = (
        start(add_one),
        fork(add_one, into=[double, negative]),
        join(double, negative, into=together),
    )


def sum_up(add_one: int, double: int, negative: int) -> int:
    return add_one + double + negative


class Needing(Workflow):
    """A graph that is no tree: the last step needs one far behind and one just before it."""

    Input = Number
    flow = (
        needs(double, [add_one]),
        needs(negative, [add_one]),
        needs(together, [double, negative]),
        needs(sum_up, [add_one, together]),
    )


# Choices


class Medium(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"


@dataclass(frozen=True)
class Inquiry:
    media: list[Medium]


def classify(media: list[Medium]) -> Inquiry:
    return Inquiry(media)


def read_text(classify: Inquiry) -> str:
    return "read"


def see_image(classify: Inquiry) -> str:
    return "seen"


def see_nothing(classify: Inquiry) -> str:
    return "nothing"


def gather(
    read_text: str | None, see_image: str | None, see_nothing: str | None
) -> list[str]:
    return [found for found in (read_text, see_image, see_nothing) if found]


class MultiChoice(Workflow):
    """A branch for each value in a list; another one when there is none for any."""

    Input = Inquiry
    flow = (
        start(classify),
        fork(
            classify,
            on="media",
            into={Medium.TEXT: read_text, Medium.IMAGE: see_image},
            otherwise=see_nothing,
        ),
        join(read_text, see_image, see_nothing, into=gather),
    )


def is_big(number: int) -> bool:
    return number > 10


def is_even(number: int) -> bool:
    return number % 2 == 0


def same(number: int) -> int:
    return number


def big(same: int) -> str:
    return "big"


def even(same: int) -> str:
    return "even"


def all_in_all(big: str | None, even: str | None) -> str:
    return f"{big} {even}"


class ByPredicate(Workflow):
    """Branches whose condition holds, any number of them, and a step after those taken."""

    Input = Number
    flow = (
        start(same),
        fork(same, into=[case(is_big, to=big), case(is_even, to=even)]),
        join(big, even, into=all_in_all),
    )


class Priority(StrEnum):
    LOW = "low"
    URGENT = "urgent"


@dataclass(frozen=True)
class Triage:
    priority: Priority


def prioritize(priority: Priority) -> Triage:
    return Triage(priority)


def reply(prioritize: Triage) -> str:
    return "replied"


def escalate(prioritize: Triage) -> str:
    return "escalated"


class RouteByValue(Workflow):
    """Exactly one branch, by a field."""

    Input = Triage
    flow = (
        start(prioritize),
        route(
            prioritize,
            on="priority",
            to={Priority.LOW: reply, Priority.URGENT: escalate},
        ),
    )


def plain(same: int) -> str:
    return "plain"


class RouteByPriority(Workflow):
    """The first case that holds, the highest priority first."""

    Input = Number
    flow = (
        start(same),
        route(
            same,
            case(is_even, to=even, priority=5),
            case(is_big, to=big, priority=10),
            otherwise=plain,
        ),
    )


# Fan-out and fan-in


@dataclass(frozen=True)
class Numbers:
    numbers: list[int]


def deal(numbers: list[int]) -> Numbers:
    return Numbers(numbers)


def square(item: int) -> int:
    if item < 0:
        raise Permanent(f"{item} is negative")
    return item * item


def total(square: list[int]) -> int:
    return sum(square)


def squares(**limits: Any) -> tuple[FlowRow, ...]:
    return start(deal), each(deal, over="numbers", do=square, into=total, **limits)


class FanOut(Workflow):
    """A step for each number of a list."""

    Input = Numbers
    flow = squares()


class Windowed(Workflow):
    """No more than two at once."""

    Input = Numbers
    flow = squares(window=2)


class Tolerant(Workflow):
    """One may fail."""

    Input = Numbers
    flow = squares(tolerate=1)


class HalfTolerant(Workflow):
    """Half of them may fail."""

    Input = Numbers
    flow = squares(tolerate=0.5)


# Loops


def count_up(number: int, look_up: int | None = None) -> int:
    return (number if look_up is None else look_up) + 1


def look_up(count_up: int) -> int:
    return count_up


def enough(count: int) -> bool:
    return count >= 3


def stop(look_up: int) -> str:
    return f"enough at {look_up}"


def give_up(look_up: int) -> str:
    return f"gave up at {look_up}"


class Looping(Workflow):
    """Counts until it is enough, three times at most."""

    Input = Number
    flow = (
        start(count_up),
        repeat(
            count_up, look_up, until=enough, at_most=3, then=stop, otherwise=give_up
        ),
    )


class Bounded(Workflow):
    """The same without another way."""

    Input = Number
    flow = (
        start(count_up),
        repeat(count_up, look_up, until=enough, at_most=3, then=stop),
    )


# Joins


def fails_below_zero(number: int) -> str:
    if number < 0:
        raise Permanent("below zero")
    return "fine"


def quick(number: int) -> str:
    return "quick"


def other(number: int) -> str:
    return "other"


risky = step(fails_below_zero, "risky")
careful = step(fails_below_zero, "careful")


def first(quick: str | None) -> str:
    return "joined"


class AnyOf(Workflow):
    """The first of two is enough."""

    Input = Number
    flow = (start(quick, risky), join(quick, risky, into=first, wait_for="any"))


def two(quick: str | None, other: str | None) -> str:
    return "joined"


class TwoOfThree(Workflow):
    """Two of three are enough, and the third may fail."""

    Input = Number
    flow = (start(quick, other, risky), join(quick, other, risky, into=two, wait_for=2))


class TwoThatFail(Workflow):
    """Two of three are needed, and two fail."""

    Input = Number
    flow = (
        start(quick, careful, risky),
        join(quick, careful, risky, into=first, wait_for=2),
    )


def never(number: int) -> str:
    return "on a queue that nobody serves in this test"


slow = step(never, "slow", queue="press")


def after_slow(slow: str) -> str:
    return slow


class RestCancelled(Workflow):
    """The first is enough, and the branch that is left is given up."""

    Input = Number
    flow = (
        start(quick, slow),
        then(slow, after_slow),
        join(quick, after_slow, into=first, wait_for="any", rest="cancel"),
    )


class RestRuns(Workflow):
    """The first is enough, and the branch that is left goes on."""

    Input = Number
    flow = (
        start(quick, slow),
        then(slow, after_slow),
        join(quick, after_slow, into=first, wait_for="any"),
    )


def both(risky: str, after_slow: str) -> str:
    return "both"


class FailFast(Workflow):
    """The other branch is given up when one fails."""

    Input = Number
    flow = (
        start(risky, slow),
        then(slow, after_slow),
        join(risky, after_slow, into=both, on_failure="fail_fast"),
    )


# Errors that are caught


def explain(error: Failure) -> str:
    return f"{error.step}: {error.type}: {error.message}, {error.attempts}"


def praise(risky: str) -> str:
    return f"{risky}!"


class CatchOne(Workflow):
    """One step's failure leads elsewhere."""

    Input = Number
    flow = (then(risky, praise), catch(risky, error=Permanent, to=explain))


def finish(risky: str, slow: str) -> str:
    return "finished"


class CatchGroup(Workflow):
    """The failure of one of two gives up the other."""

    Input = Number
    flow = (
        start(risky, slow),
        join(risky, slow, into=finish),
        catch(risky, slow, error=Permanent, to=explain),
    )


class CatchMap(Workflow):
    """The failure of one element leads elsewhere."""

    Input = Numbers
    flow = (*squares(), catch(square, error=Permanent, to=explain))


# Others


parity = run(FanOut, "parity")


def after_parity(parity: int) -> str:
    return f"child gave {parity}"


class WithChild(Workflow):
    """A step that is a process of its own."""

    Input = Numbers
    flow = (then(parity, after_parity),)


class CatchChild(Workflow):
    """The cancellation of a sub-process leads elsewhere; databases of before have processes of it."""

    Input = Numbers
    flow = (then(parity, after_parity), catch(parity, error=Exception, to=explain))


class Approved(Event):
    by: str


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


approval = wait(Approved)
choice = ask("choice", choices=Answer)


def conclude(wait_for_approved: Approved, choice: Answer) -> str:
    return f"{choice} by {wait_for_approved.by}"


class Waiting(Workflow):
    """Waits for an event, and then for a person."""

    Input = Number
    flow = (then(approval, choice, conclude),)


@dataclass(frozen=True)
class Size:
    layers: int
    width: int = 1


def nothing() -> None:
    return None


class Layered(Workflow):
    """A graph made from its input: layers in which each step needs two of the layer before."""

    Input = Size

    @staticmethod
    def flow(input: Size) -> Iterator[FlowRow]:
        before: list[Any] = []
        for layer in range(input.layers):
            now = [step(nothing, f"s{layer}_{n}") for n in range(input.width)]
            if layer == 0:
                yield start(*now)
            for n, one in enumerate(now if layer else ()):
                yield needs(
                    one, [before[n], before[(n + 1) % input.width]][: input.width]
                )
            before = now


def numbered(layers: int) -> list[int]:
    return list(range(layers))


def nothing_of(item: int) -> None:
    return None


def count_all(nothing_of: list[None]) -> int:
    return len(nothing_of)


class WideFan(Workflow):
    """As many elements as the input says."""

    Input = Size
    flow = (start(numbered), each(numbered, over="", do=nothing_of, into=count_all))
