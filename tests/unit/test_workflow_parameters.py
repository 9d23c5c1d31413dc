"""What each parameter of a step is filled with, and when the workflow is refused because it cannot be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal, NewType, Protocol

import pytest
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
from orchestrator.definition.typing import MISSING
from orchestrator.definition.workflow.plan import Binding
from orchestrator.definition.workflow.rows import FlowRow
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


def test_parameters_are_bound_by_name_and_by_type() -> None:
    plan = plan_of(then(a, everything))

    assert plan["everything"].bindings == (
        Binding("a", "result", "a"),
        Binding("ticket", "input", "ticket"),
        Binding("input", "whole_input"),
        Binding("context", "context"),
        Binding("count", "input", "count"),
    )


def with_number(number: int) -> int:
    return number


def test_a_result_has_the_name_that_its_step_gives() -> None:
    plan = plan_of(then(step(work, gives="number"), with_number))

    assert plan["with_number"].bindings == (Binding("number", "result", "work"),)


def with_ticket(ticket: str) -> str:
    return ticket


def ticket() -> str:
    return ""


def test_an_earlier_result_comes_before_a_field_of_the_input() -> None:
    plan = plan_of(then(ticket, with_ticket))

    assert plan["with_ticket"].bindings == (Binding("ticket", "result", "ticket"),)


def test_but_the_result_of_a_later_step_does_not() -> None:
    plan = plan_of(then(with_ticket, ticket))

    assert plan["with_ticket"].bindings == (Binding("ticket", "input", "ticket"),)


def with_default(unknown: int = 3) -> int:
    return unknown


def test_a_default_fills_what_nothing_else_does() -> None:
    assert plan_of(with_default)["with_default"].bindings == ()


def with_failure(error: Failure | None) -> int:
    return 1


def test_the_step_behind_a_catch_gets_the_failure() -> None:
    plan = plan_of(catch(a, error=ValueError, to=with_failure))

    assert plan["with_failure"].bindings == (Binding("error", "error"),)


class Child(Workflow):
    @dataclass(frozen=True)
    class Input:
        a: int
        ticket: str
        tags: list[str] = field(default_factory=list)

    flow = (with_ticket,)


def test_the_input_of_a_sub_process_is_bound_like_parameters() -> None:
    plan = plan_of(then(a, run(Child)))

    assert plan["child"].bindings == (
        Binding("a", "result", "a"),
        Binding("ticket", "input", "ticket"),
    )


# What nothing fills


def with_unknown(unknown: int) -> int:
    return 1


def with_any_number(*numbers: int) -> int:
    return 1


def with_position(number: int, /) -> int:
    return 1


def needs_a(a: int) -> int:
    return a


def of_strange(a: "Strange") -> int:  # type: ignore[name-defined]  # noqa: F821
    return 1


def says_nothing(a: int):  # type: ignore[no-untyped-def]
    return 1


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


@pytest.mark.parametrize(("rows", "reason"), UNBOUND)
def test_every_parameter_is_filled(rows: list[Any], reason: str) -> None:
    assert reason in refusal(*rows).reason


# Results that may be missing


def optional(b: int | None, c: int | None) -> int:
    return 1


def with_b(b: int) -> int:
    return b


def with_b_and_c(b: int, c: int) -> int:
    return b + c


def with_a_and_x(a: int, x: int) -> int:
    return a + x


CERTAIN: list[list[Any]] = [
    [then(b, with_b)],
    [then(a, b, c, with_b)],
    [fork(a, into=[b, c]), join(b, c, into=with_b_and_c)],
    [needs(with_b_and_c, [b, c])],
    # through branches that come together again
    [
        fork(a, into=[b, look]),
        route(look, case(large, to=d), otherwise=e),
        join(b, d, e, into=with_b),
    ],
    [
        then(b, look),
        route(look, case(large, to=d), otherwise=e),
        join(d, e, into=with_b),
    ],
    [
        fork(a, into=[b, look]),
        fork(look, into=[case(large, to=d), case(huge, to=e)], otherwise=x),
        join(b, d, e, x, into=c),
        then(c, with_b),
    ],
    [
        fork(a, into=[b, look]),
        route(look, on="priority", to={Priority.LOW: d, Priority.URGENT: e}),
        join(d, e, into=c),
        join(b, c, into=with_b_and_c),
    ],
    # within one branch
    [fork(look, into=[case(large, to=b)]), then(b, with_b)],
    [fork(look, into=[case(large, to=b), case(huge, to=e)]), then(b, c, with_b)],
    # in and after a loop
    [repeat(b, with_b, until=enough, at_most=2, then=c)],
    [repeat(b, c, until=enough, at_most=2, then=with_b_and_c)],
    [repeat(b, c, until=enough, at_most=2, then=with_b_and_c, otherwise=e)],
    [
        repeat(b, until=enough, at_most=2, then=c, otherwise=e),
        join(c, e, into=with_b),
    ],
    # whatever fails, what was before is there
    [then(b, c), catch(c, error=ValueError, to=with_b)],
    [
        fork(a, into=[b, c]),
        catch(b, c, error=ValueError, to=x),
        join(b, c, into=with_b_and_c),
    ],
    [
        then(b, c, d),
        catch(c, error=ValueError, to=e),
        join(d, e, into=with_b),
    ],
    # a fork of one branch takes it, or its step has failed
    [fork(look, into=[case(large, to=b)]), join(b, c, into=with_b)],
    # every branch that there is
    [
        fork(look, into=[case(large, to=b), case(huge, to=c)]),
        join(b, c, into=with_b_and_c, wait_for="every"),
    ],
    [
        fork(a, into=[b, c]),
        catch(b, error=ValueError, to=x),
        join(b, c, into=with_b_and_c, wait_for=2),
    ],
    # any of several brings what all of them bring
    [then(b, look), fork(look, into=[c, d]), join(c, d, into=with_b, wait_for="any")],
]


@pytest.mark.parametrize("rows", CERTAIN)
def test_a_result_that_is_certainly_there_may_be_required(rows: list[Any]) -> None:
    assert define(*rows)


MISSING_RESULTS: list[tuple[list[Any], str]] = [
    (
        [fork(look, into=[case(large, to=b)]), then(look, c), needs(with_b, [b, c])],
        "b",
    ),
    (
        [fork(look, into=[case(large, to=b), case(huge, to=c)]), needs(with_b, [b, c])],
        "b",
    ),
    (
        [
            route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c}),
            join(b, c, into=with_b_and_c),
        ],
        "b",
    ),
    ([fork(a, into=[b, c]), join(b, c, into=with_b, wait_for="any")], "b"),
    ([fork(a, into=[b, c, d]), join(b, c, d, into=with_b, wait_for=2)], "b"),
    (
        [
            fork(a, into=[b, c]),
            join(b, c, into=d, wait_for="any"),
            then(d, with_b),
        ],
        "b",
    ),
    ([catch(b, error=ValueError, to=with_b)], "b"),
    (
        [then(b, c), catch(b, error=ValueError, to=x), join(c, x, into=with_b)],
        "b",
    ),
    (
        [
            fork(a, into=[b, c]),
            catch(b, error=ValueError, to=x),
            join(b, c, x, into=with_b),
        ],
        "b",
    ),
    # of a group, what begins later would arrive after the failure
    (
        [
            fork(a, into=[b, d]),
            then(d, c),
            catch(b, c, error=ValueError, to=x),
            join(b, c, into=with_b_and_c),
        ],
        "b",
    ),
    # taken back with its group, although c itself was done
    (
        [
            fork(a, into=[c, d]),
            then(d, e),
            catch(c, e, error=ValueError, to=x),
            join(c, e, into=b),
            join(a, b, into=with_b),
        ],
        "b",
    ),
    # a race may end without a winner: one branch fails, and then the other is not taken
    (
        [
            fork(look, into=[e, case(large, to=c)]),
            join(c, d, into=b, wait_for="any"),
            join(a, b, into=with_b),
        ],
        "b",
    ),
    ([repeat(with_b, b, until=enough, at_most=2, then=c)], "b"),
    (
        [
            then(wait(Approved, "late", deadline=timedelta(1), late=x), b, c),
            join(x, c, into=with_b),
        ],
        "b",
    ),
]


@pytest.mark.parametrize(("rows", "name"), MISSING_RESULTS)
def test_a_result_that_may_be_missing_needs_none_or_a_default(
    rows: list[Any], name: str
) -> None:
    refused = refusal(*rows).reason

    assert f"needs {name}, but {name} may have no result then" in refused
    assert f"write {name}: int | None, or give it a default" in refused


def test_what_undoes_a_step_may_need_only_what_was_before_it() -> None:
    assert define(then(x, a), undo(a, by=with_a_and_x))

    refused = refusal(then(a, x), undo(a, by=with_a_and_x))
    assert "x, which gives it, does not come before a" in refused.reason


def test_none_is_taken_where_a_branch_may_be_missing() -> None:
    plan = plan_of(
        route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c}),
        join(b, c, into=optional),
    )

    assert plan["optional"].bindings == (
        Binding("b", "result", "b"),
        Binding("c", "result", "c"),
    )


def with_default_b(b: int = 5) -> int:
    return b


def test_a_default_is_kept_for_a_branch_that_may_be_missing() -> None:
    plan = plan_of(
        fork(look, into=[case(large, to=b)]),
        then(b, c),
        then(look, d),
        needs(with_default_b, [c, d]),
    )

    assert plan["with_default_b"].bindings == (Binding("b", "result", "b", 5),)


def refine(refine: int | None) -> int:
    return 1


def test_a_loop_may_carry_a_result_into_its_next_round() -> None:
    plan = plan_of(repeat(refine, until=enough, at_most=3, then=a))

    assert plan["refine"].bindings == (Binding("refine", "result", "refine"),)


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


class Named(Protocol):
    name: str


@dataclass(frozen=True)
class Base:
    n: int


@dataclass(frozen=True)
class Derived(Base):
    pass


@pytest.mark.parametrize(
    ("given", "wanted", "fits"),
    [
        (int, int, True),
        (int, str, False),
        (int, float, True),
        (float, int, False),
        (bool, int, True),
        (int, int | None, True),
        (int | None, int, False),
        (int | str, float | bytes, False),
        (str | None, int, False),
        (str | None, int | None, False),
        (Priority, str, True),
        (Priority, int, False),
        (Derived, Base, True),
        (Base, Inquiry, False),
        (list[int], list[int], True),
        (list[int], list[str], False),
        (list[int], Sequence[int], True),
        (list[int], Sequence[str], False),
        (list[int], list, True),
        (list[int], tuple[int, ...], False),
        (list[Derived], list[Base], True),
        (frozenset[str], set[str], False),
        (dict[str, int], dict[str, str], False),
        (tuple[int, str], tuple[int, int], False),
        (Literal["a", "b"], str, True),
        (Literal["a", "b"], Literal["b", "c"], False),
        (Literal["a"], Literal["b"], False),
        (Literal["a"], int, False),
        (Ticket, str, True),
        (Annotated[int, "years"], int, True),
        (Annotated[int, "years"], str, False),
        (Ticket, int, False),
        (Inquiry, Any, True),
        (Inquiry, object, True),
        (Inquiry, Named, True),
    ],
    ids=str,
)
def test_producer_and_consumer_agree(given: Any, wanted: Any, fits: bool) -> None:
    def giver():  # type: ignore[no-untyped-def]
        return None

    def taker(giver):  # type: ignore[no-untyped-def]
        return 1

    giver.__annotations__ = {"return": given}
    taker.__annotations__ = {"giver": wanted, "return": int}

    if fits:
        assert define(then(giver, taker))
    else:
        assert "taker wants giver: " in refusal(then(giver, taker)).reason


def of_text(item: str) -> int:
    return 1


def mere_list(b: list[int]) -> int:
    return 1


def counting(count: str) -> int:
    return 1


def whole_inquiry(input: Inquiry) -> int:
    return 1


@pytest.mark.parametrize(
    "row",
    [
        each(look, over="pages", do=of_text, into=a),
        then(b, mere_list),
        counting,
        whole_inquiry,
    ],
    ids=["elements of a field", "a list", "a field of the input", "the whole input"],
)
def test_elements_fields_and_the_input_agree_too(
    row: FlowRow | Callable[..., Any],
) -> None:
    row = row if isinstance(row, FlowRow) else then(row, a)

    assert " wants " in refusal(row).reason


# Outcomes beside a result

Unlucky = TypeAliasType("Unlucky", Permanent | Skip)


class Refused(Permanent):
    pass


@pytest.mark.parametrize(
    ("annotation", "result"),
    [
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
    ],
    ids=str,
)
def test_outcomes_are_no_part_of_the_result(annotation: Any, result: Any) -> None:
    def giver():  # type: ignore[no-untyped-def]
        return None

    giver.__annotations__ = {"return": annotation}
    flow = define(giver)

    assert flow.plan()["giver"].result_type == result
    assert flow.result_type() == result


def number_or_later() -> int | Retry:
    return Retry()


def letter_or_never() -> Literal["a"] | Permanent:
    return Permanent()


def with_text(number_or_later: str) -> int:
    return 1


def with_letter(letter_or_never: Literal["a"]) -> int:
    return 1


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


def nested() -> Outer | None:
    return None


def test_dataclasses_of_results_and_inputs_are_read_strictly() -> None:
    define(nested, Input=Outer)

    forms: list[Any] = [Outer, Inner]
    for form in forms:
        assert form.__pydantic_config__["strict"]
        assert form.__pydantic_config__["extra"] == "forbid"


class Opaque:
    pass


@pytest.mark.parametrize(
    "annotation", [Opaque, Callable[[], int], list[Opaque], StepContext], ids=str
)
def test_a_result_that_json_cannot_hold_is_refused(annotation: Any) -> None:
    def giver():  # type: ignore[no-untyped-def]
        return None

    giver.__annotations__ = {"return": annotation}

    refused = refusal(then(giver, a))

    assert "the result of giver cannot be written as JSON" in refused.reason
    assert refused.row == "then(giver, a)"


def test_a_parameter_without_a_default_has_none() -> None:
    assert Binding("a", "result", "a").default is MISSING
