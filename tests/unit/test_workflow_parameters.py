"""The source of each parameter of a step, and workflows that are refused for want of one."""

# These steps are declared and never run.
# mypy: disable-error-code="empty-body"

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Literal, NewType

from typing_extensions import TypeAliasType

from orchestrator import CorruptInput, Permanent, Retry, Skip
from orchestrator.definition import (
    Failure,
    StepContext,
    Workflow,
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
    undo,
    wait,
)
from orchestrator.definition.annotations import MISSING
from orchestrator.definition.workflow.plan import Binding
from orchestrator.definition.workflow.rows import FlowRow
from tests.services.cases import cases
from tests.unit.workflows import (
    Approved,
    Input,
    Inquiry,
    Priority,
    define,
    enough,
    huge,
    large,
    look,
    plan_of,
    refusal,
    steps,
    work,
)

a, b, c, d, e, x = steps("a b c d e x")


# Sources


def everything(
    a: int, ticket: str, input: Input, context: StepContext, count: int = 7
) -> int:
    return a


def with_number(number: int) -> int: ...


def with_ticket(ticket: str) -> str: ...


def ticket() -> str: ...


def with_default(unknown: int = 3) -> int: ...


def with_failure(error: Failure | None) -> int: ...


class Child(Workflow):
    @dataclass(frozen=True)
    class Input:
        a: int
        ticket: str
        tags: list[str] = field(default_factory=list)

    flow = (with_ticket,)


def optional(b: int | None, c: int | None) -> int: ...


def with_default_b(b: int = 5) -> int: ...


def refine(refine: int | None) -> int: ...


TICKET, FAILURE = Binding("ticket", "input", "ticket"), Binding("error", "error")
A, B, C = (Binding(name, "result", name) for name in "abc")
BY_PRIORITY = route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c})
ONE_TAKEN = fork(look, into=[case(large, to=b)])


@cases(
    "rows, name, bindings",
    # by name and by type
    (
        [then(a, everything)],
        "everything",
        [
            *(A, TICKET, Binding("input", "whole_input")),
            *(Binding("context", "context"), Binding("count", "input", "count")),
        ],
    ),
    # a result has the name that its step gives
    (
        [then(step(work, gives="number"), with_number)],
        "with_number",
        [Binding("number", "result", "work")],
    ),
    # an earlier result comes before a field of the input, but that of a later step does not
    (
        [then(ticket, with_ticket)],
        "with_ticket",
        [Binding("ticket", "result", "ticket")],
    ),
    ([then(with_ticket, ticket)], "with_ticket", [TICKET]),
    # a default fills what nothing else does
    ([with_default], "with_default", []),
    ([catch(a, error=ValueError, to=with_failure)], "with_failure", [FAILURE]),
    # the input of a sub-process is filled like parameters
    ([then(a, run(Child))], "child", [A, TICKET]),
    # where a branch may be missing: None, or a default
    ([BY_PRIORITY, join(b, c, into=optional)], "optional", [B, C]),
    (
        [ONE_TAKEN, then(b, c), then(look, d), needs(with_default_b, [c, d])],
        "with_default_b",
        [Binding("b", "result", "b", 5)],
    ),
    # a loop carries a result into its next round
    (
        [repeat(refine, until=enough, at_most=3, then=a)],
        "refine",
        [Binding("refine", "result", "refine")],
    ),
)
def test_each_parameter_has_one_source(rows: Any, name: str, bindings: Any) -> None:
    assert plan_of(*rows)[name].bindings == tuple(bindings)


# What nothing fills


def with_unknown(unknown: int) -> int: ...


def with_any_number(*numbers: int) -> int: ...


def with_position(number: int, /) -> int: ...


def needs_a(a: int) -> int: ...


def of_strange(a: "Strange") -> int: ...  # type: ignore[name-defined]  # noqa: F821


def says_nothing(a: int): ...  # type: ignore[no-untyped-def]


UNBOUND: list[tuple[list[Any], str]] = [
    (
        [with_unknown],
        "with_unknown has a parameter unknown, but no result and no field of Input has that name",
    ),
    ([with_any_number], "the parameter numbers cannot be given by name"),
    ([with_position], "the parameter number cannot be given by name"),
    ([of_strange], "of_strange: name 'Strange' is not defined"),
    ([then(a, says_nothing)], "says_nothing has no return annotation"),
    ([then(needs_a, a)], "a, which gives it, does not come before needs_a"),
    ([start(a, needs_a)], "a, which gives it, does not come before needs_a"),
    ([run(Child)], "Child.Input has a parameter a, but no result"),
    ([then(a, with_failure)], "but no catch leads to with_failure"),
]


@cases("rows, reason", *UNBOUND)
def test_every_parameter_is_filled(rows: list[Any], reason: str) -> None:
    assert reason in refusal(*rows).reason


# Results that may be missing


def with_b(b: int) -> int: ...


def with_b_and_c(b: int, c: int) -> int: ...


def with_a_and_x(a: int, x: int) -> int: ...


FORKED, BESIDE_B = fork(a, into=[b, c]), fork(a, into=[b, look])
LARGE_OR_E = route(look, case(large, to=d), otherwise=e)
LARGE_OR_HUGE = fork(look, into=[case(large, to=b), case(huge, to=c)])
B_CAUGHT = catch(b, error=ValueError, to=x)
round_of: Any = partial(repeat, until=enough, at_most=2, then=c)

CERTAIN: list[list[Any]] = [
    [then(b, with_b)],
    [then(a, b, c, with_b)],
    [FORKED, join(b, c, into=with_b_and_c)],
    [needs(with_b_and_c, [b, c])],
    # through branches that come together again
    [BESIDE_B, LARGE_OR_E, join(b, d, e, into=with_b)],
    [then(b, look), LARGE_OR_E, join(d, e, into=with_b)],
    [
        BESIDE_B,
        fork(look, into=[case(large, to=d), case(huge, to=e)], otherwise=x),
        *(join(b, d, e, x, into=c), then(c, with_b)),
    ],
    [
        BESIDE_B,
        route(look, on="priority", to={Priority.LOW: d, Priority.URGENT: e}),
        *(join(d, e, into=c), join(b, c, into=with_b_and_c)),
    ],
    # within one branch
    [ONE_TAKEN, then(b, with_b)],
    [fork(look, into=[case(large, to=b), case(huge, to=e)]), then(b, c, with_b)],
    # in and after a loop
    [round_of(b, with_b)],
    [repeat(b, c, until=enough, at_most=2, then=with_b_and_c)],
    [repeat(b, c, until=enough, at_most=2, then=with_b_and_c, otherwise=e)],
    [round_of(b, otherwise=e), join(c, e, into=with_b)],
    # whatever fails, what was before is there
    [then(b, c), catch(c, error=ValueError, to=with_b)],
    [FORKED, catch(b, c, error=ValueError, to=x), join(b, c, into=with_b_and_c)],
    [then(b, c, d), catch(c, error=ValueError, to=e), join(d, e, into=with_b)],
    # a fork of one branch takes it, or its step has failed
    [ONE_TAKEN, join(b, c, into=with_b)],
    # every branch that there is
    [LARGE_OR_HUGE, join(b, c, into=with_b_and_c, wait_for="every")],
    [FORKED, B_CAUGHT, join(b, c, into=with_b_and_c, wait_for=2)],
    # any of several brings what all of them bring
    [then(b, look), fork(look, into=[c, d]), join(c, d, into=with_b, wait_for="any")],
]


@cases("rows", *CERTAIN)
def test_a_result_that_is_certainly_there_may_be_required(rows: list[Any]) -> None:
    assert define(*rows)


WITHOUT_B: list[list[Any]] = [
    [ONE_TAKEN, then(look, c), needs(with_b, [b, c])],
    [LARGE_OR_HUGE, needs(with_b, [b, c])],
    [BY_PRIORITY, join(b, c, into=with_b_and_c)],
    [FORKED, join(b, c, into=with_b, wait_for="any")],
    [fork(a, into=[b, c, d]), join(b, c, d, into=with_b, wait_for=2)],
    [FORKED, join(b, c, into=d, wait_for="any"), then(d, with_b)],
    [catch(b, error=ValueError, to=with_b)],
    [then(b, c), B_CAUGHT, join(c, x, into=with_b)],
    [FORKED, B_CAUGHT, join(b, c, x, into=with_b)],
    # of a group, what begins later would arrive after the failure
    [
        *(fork(a, into=[b, d]), then(d, c)),
        catch(b, c, error=ValueError, to=x),
        join(b, c, into=with_b_and_c),
    ],
    # taken back with its group, although c itself was done
    [
        *(fork(a, into=[c, d]), then(d, e)),
        catch(c, e, error=ValueError, to=x),
        *(join(c, e, into=b), join(a, b, into=with_b)),
    ],
    # a race may end without a winner: one branch fails, and then the other is not taken
    [
        fork(look, into=[e, case(large, to=c)]),
        *(join(c, d, into=b, wait_for="any"), join(a, b, into=with_b)),
    ],
    [round_of(with_b, b)],
    [
        then(wait(Approved, "late", deadline=timedelta(1), late=x), b, c),
        join(x, c, into=with_b),
    ],
]


@cases("rows", *WITHOUT_B)
def test_a_result_that_may_be_missing_needs_none_or_a_default(rows: list[Any]) -> None:
    refused = refusal(*rows).reason

    assert "needs b, but b may have no result then" in refused
    assert "write b: int | None, or give it a default" in refused


def test_what_undoes_a_step_may_need_only_what_was_before_it() -> None:
    assert define(then(x, a), undo(a, by=with_a_and_x))

    refused = refusal(then(a, x), undo(a, by=with_a_and_x))
    assert "x, which gives it, does not come before a" in refused.reason


def test_a_child_that_may_end_without_a_result_may_give_none() -> None:
    child = define(
        fork(look, into=[case(large, to=b), case(huge, to=c)]),
        join(b, c, into=d, wait_for=2),
    )
    sure = define(fork(look, into=[case(large, to=b)]))

    assert child.result_type() == int | None
    assert sure.result_type() is int


# Annotations

Ticket = NewType("Ticket", str)


def giving(annotation: Any) -> Any:
    """A step of this name whose result has this annotation."""

    def giver():  # type: ignore[no-untyped-def]
        return None

    giver.__annotations__ = {"return": annotation}
    return giver


@cases(
    "given, wanted, fits",
    (int, int | None, True),
    (int, str, False),
    (Annotated[int, "years"], int, True),
    (Annotated[int, "years"], str, False),
    (Ticket, str, True),
    (Ticket, int, False),
)
def test_producer_and_consumer_agree(given: Any, wanted: Any, fits: bool) -> None:
    giver = giving(given)

    def taker(giver):  # type: ignore[no-untyped-def]
        return 1

    taker.__annotations__ = {"giver": wanted, "return": int}

    if fits:
        assert define(then(giver, taker))
    else:
        assert "taker wants giver: " in refusal(then(giver, taker)).reason


def of_text(item: str) -> int: ...


def mere_list(b: list[int]) -> int: ...


def counting(count: str) -> int: ...


def whole_inquiry(input: Inquiry) -> int: ...


@cases(
    "row",
    each(look, over="pages", do=of_text, into=a),
    *(then(b, mere_list), then(counting, a), then(whole_inquiry, a)),
)
def test_elements_fields_and_the_input_agree_too(row: FlowRow) -> None:
    assert " wants " in refusal(row).reason


# Outcomes beside a result

Unlucky = TypeAliasType("Unlucky", Permanent | Skip)


class Refused(Permanent):
    pass


@cases(
    "annotation, result",
    (int | Retry, int),
    (Inquiry | Skip, Inquiry),
    (Literal["a"] | Permanent, Literal["a"]),
    (int | str | Refused, int | str),
    (int | None | CorruptInput, int | None),
    (int | Unlucky, int),
    (Ticket | Retry, Ticket),
    (Retry | Permanent, type(None)),
    (Retry, type(None)),
    (None | Retry, type(None)),
    (int | None, int | None),
    (None, type(None)),
)
def test_outcomes_are_no_part_of_the_result(annotation: Any, result: Any) -> None:
    flow = define(giving(annotation))

    assert flow.plan()["giver"].result_type == result
    assert flow.result_type() == result


def number_or_later() -> int | Retry: ...


def letter_or_never() -> Literal["a"] | Permanent: ...


def with_text(number_or_later: str) -> int: ...


def with_letter(letter_or_never: Literal["a"]) -> int: ...


def test_later_steps_get_the_type_without_outcomes() -> None:
    refused = refusal(then(number_or_later, with_text))

    assert refused.reason.endswith("number_or_later: str, but it gets int")
    assert define(then(letter_or_never, with_letter))


def test_a_route_needs_no_case_for_an_outcome() -> None:
    assert define(route(letter_or_never, on="", to={"a": a}))


# The forms that are stored


@dataclass(frozen=True)
class Inner:
    n: int


@dataclass(frozen=True)
class Outer:
    inner: list[Inner]


def nested() -> Outer | None: ...


def test_dataclasses_of_results_and_inputs_are_read_strictly() -> None:
    define(nested, Input=Outer)

    forms: list[Any] = [Outer, Inner]
    for form in forms:
        assert form.__pydantic_config__["strict"]
        assert form.__pydantic_config__["extra"] == "forbid"


class Opaque:
    pass


@cases("annotation", Opaque, Callable[[], int], list[Opaque], StepContext)
def test_a_result_that_json_cannot_hold_is_refused(annotation: Any) -> None:
    refused = refusal(then(giving(annotation), a))

    assert "the result of giver cannot be written as JSON" in refused.reason
    assert refused.row == "then(giver, a)"


def test_a_parameter_without_a_default_has_none() -> None:
    assert Binding("a", "result", "a").default is MISSING
