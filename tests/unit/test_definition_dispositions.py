"""What becomes of events that no row takes, and rows that several steps share."""

from collections.abc import Iterator
from typing import Any

import pytest

from monitoring.diagrams.table import transition_table
from orchestrator.definition import (
    ANY,
    ProcessManager,
    during,
    ignore,
    park,
    reject,
    stored,
    when,
)
from orchestrator.definition.graph import Disposition, Graph
from tests.unit.shop import (
    PAY,
    SEND,
    START,
    Data,
    Ordered,
    Pack,
    Paid,
    Payment,
    Returned,
    Sent,
    Step,
    define,
    refusal,
    said_of,
)

CARD, CASH = Payment.CARD, Payment.CASH
DATA = Data("O-1", CARD)
BACK = when(Returned).go_to(Step.DONE)
NEW = during(Step.NEW, START)
UNPAID = during(Step.UNPAID, PAY)
PACKING = during(Step.PACKING, SEND)


def is_small(data: Any, event: Any) -> bool:
    return bool(event.amount < 10)


async def is_slow(data: Any, event: Any) -> bool:
    return True


def shop(*groups: Any, **attributes: Any) -> type[ProcessManager]:
    return define(transitions=groups, **attributes)


def outcome(cls: type[ProcessManager], step: Step, event: Any, data: Any = DATA) -> str:
    return cls.decide(step, data, event).outcome


# Guards


@pytest.mark.parametrize(
    ("row", "word"),
    [(ignore, "ignored"), (reject, "rejected"), (park, "parked")],
    ids=["ignore", "reject", "park"],
)
def test_a_disposition_has_guards_like_any_row(row: Any, word: str) -> None:
    found = define(unpaid=[row(Paid, final=False), PAY])

    assert outcome(found, Step.UNPAID, Paid(3, final=False)) == word
    assert outcome(found, Step.UNPAID, Paid(3)) == "moved"


def test_and_predicates() -> None:
    found = define(unpaid=[ignore(Paid, is_small), PAY])

    assert outcome(found, Step.UNPAID, Paid(3)) == "ignored"
    assert outcome(found, Step.UNPAID, Paid(30)) == "moved"


def test_what_a_guarded_disposition_leaves_is_parked_when_no_row_moves() -> None:
    found = define(unpaid=[PAY, reject(Returned, payment=CASH)])

    assert outcome(found, Step.UNPAID, Returned(), Data("O-1", CASH)) == "rejected"
    assert outcome(found, Step.UNPAID, Returned()) == "parked"


def test_beside_a_row_that_moves_the_cases_must_be_covered() -> None:
    later = ignore(Paid, final=False)
    row = when(Paid, final=True, payment=CARD).go_to(Step.PACKING)

    assert "a gap in Unpaid: no row takes Paid when" in str(
        refusal(unpaid=[row, later])
    )


def test_guards_of_dispositions_must_not_overlap_with_others() -> None:
    first, second = ignore(Paid, final=True), when(Paid, final=[True, False])

    assert "overlaps with 'Paid [final = yes]' when final = yes" in str(
        refusal(unpaid=[first, second.go_to(Step.PACKING)])
    )


def test_the_guard_of_a_disposition_can_hold() -> None:
    found = refusal(
        new=[START.set(payment=CARD)],
        unpaid=[PAY, ignore(Returned, payment=CASH)],
    )

    assert found.reason == (
        "its guard can never hold: the data never has these values here"
    )


@pytest.mark.parametrize(
    "row",
    [
        ignore(Sent).set(gift=True),
        reject(Sent).issue(Pack),
        park(Sent).go_to(Step.DONE),
        reject(Sent).escalate(),
    ],
    ids=["sets", "issues", "goes", "escalates"],
)
def test_what_does_not_move_does_nothing_else(row: Any) -> None:
    assert "only a row that moves sets fields, issues commands" in str(
        refusal(unpaid=[PAY, row])
    )


def test_a_disposition_takes_no_lambda() -> None:
    row = ignore(Paid, lambda data, event: True)

    assert "named functions" in str(refusal(unpaid=[row, PAY]))


def test_a_condition_is_no_coroutine() -> None:
    row = when(Paid, is_slow).go_to(Step.PACKING)  # type: ignore[arg-type]  # that is the mistake

    assert "is_slow is asynchronous" in str(refusal(unpaid=[row, PAY]))


# What is not listed


@pytest.mark.parametrize(
    ("otherwise", "word"),
    [(park, "parked"), (ignore, "ignored"), (reject, "rejected")],
    ids=["park", "ignore", "reject"],
)
def test_a_class_says_what_becomes_of_what_is_not_listed(
    otherwise: Any, word: str
) -> None:
    found = define(otherwise=otherwise)

    assert outcome(found, Step.UNPAID, Sent("P-1")) == word
    assert outcome(found, Step.UNPAID, Ordered("O-2", CARD)) == word


def test_a_step_says_it_for_itself() -> None:
    found = shop(
        NEW,
        during(Step.UNPAID, PAY, otherwise=ignore),
        PACKING,
        otherwise=reject,
    )

    assert outcome(found, Step.UNPAID, Sent("P-1")) == "ignored"
    assert outcome(found, Step.PACKING, Paid(3)) == "rejected"


def test_a_step_may_park_what_can_come_early() -> None:
    found = define(unpaid=[PAY, park(Sent)], otherwise=reject)

    assert outcome(found, Step.UNPAID, Sent("P-1")) == "parked"
    assert outcome(found, Step.UNPAID, Returned()) == "rejected"


def test_a_stale_answer_is_of_what_is_not_listed() -> None:
    row = when(Sent, parcel=stored("parcel")).go_to(Step.DONE)
    found = define(packing=[row, BACK], otherwise=reject)

    assert outcome(found, Step.PACKING, Sent("P-2")) == "rejected"


def test_before_the_process_and_after_it_nothing_is_rejected() -> None:
    found = define(otherwise=reject)

    assert outcome(found, Step.NEW, Sent("P-1"), None) == "parked"
    assert found.rest(found.Step("Done")) == "park"


def test_a_step_lists_what_it_does_not_only_park() -> None:
    found = shop(
        NEW,
        during(Step.UNPAID, PAY, park(Sent), ignore(Returned, payment=CASH)),
        during(Step.PACKING, SEND, park(Paid), otherwise=reject),
    )

    assert found.listed("Unpaid") == {"Paid", "Returned"}
    assert found.listed("Packing") == {"Ordered", "Sent", "Returned"}


@pytest.mark.parametrize(
    ("groups", "more", "reason"),
    [
        (
            [NEW, UNPAID, PACKING],
            {"otherwise": "reject"},
            "otherwise='reject': it must",
        ),
        (
            [NEW, UNPAID, PACKING],
            {"otherwise": when},
            "otherwise=when: it must be park",
        ),
        (
            [
                NEW,
                during(Step.UNPAID, PAY, otherwise=ignore),
                PACKING,
                during(Step.UNPAID, BACK, otherwise=reject),
            ],
            {},
            "Unpaid says twice what becomes of an event that no row takes",
        ),
        (
            [during(Step.NEW, START, otherwise=reject), UNPAID, PACKING],
            {},
            "New: nothing waits there, so there is no otherwise",
        ),
        (
            [NEW, UNPAID, PACKING, during(Step.DONE, otherwise=reject)],
            {},
            "Done: nothing waits there, so there is no otherwise",
        ),
        (
            [NEW, UNPAID, PACKING, during(ANY, BACK, otherwise=reject)],
            {},
            "ANY: what holds for all steps is said by the class: otherwise = reject",
        ),
    ],
)
def test_otherwise_is_said_once_and_where_a_process_waits(
    groups: list[Any], more: dict[str, Any], reason: str
) -> None:
    assert reason in str(refusal(transitions=groups, **more))


# Several steps


def test_a_row_may_be_shared_by_steps() -> None:
    found = shop(NEW, UNPAID, PACKING, during([Step.UNPAID, Step.PACKING], BACK))

    for step in (Step.UNPAID, Step.PACKING):
        assert found.decide(step, DATA, Returned()).step == Step.DONE
    edges = [edge for edge in found.graph().edges if edge.event == "Returned"]
    assert [(edge.source, edge.target) for edge in edges] == [
        ("Unpaid", "Done"),
        ("Packing", "Done"),
    ]
    assert len({edge.id for edge in found.graph().edges}) == 5


def test_any_stands_for_every_step_in_which_a_process_waits() -> None:
    found = shop(during(ANY, BACK), NEW, UNPAID, PACKING)

    assert found.decide(Step.UNPAID, DATA, Returned()).step == Step.DONE
    assert found.decide(Step.PACKING, DATA, Returned()).step == Step.DONE
    assert found.starting_events() == {"Ordered"}
    assert Step.DONE not in found.rows
    assert found.graph() == shop(NEW, UNPAID, PACKING, during(ANY, BACK)).graph()


def test_a_steps_own_rows_come_before_those_of_any() -> None:
    own = when(Returned, payment=CASH).go_to(Step.PACKING)
    found = shop(during(ANY, BACK), NEW, during(Step.UNPAID, PAY, own), PACKING)

    cash = Data("O-1", CASH)
    assert found.decide(Step.UNPAID, cash, Returned()).step == Step.PACKING
    assert found.decide(Step.UNPAID, DATA, Returned()).step == Step.DONE


def test_a_row_of_any_that_a_step_never_tries_is_refused() -> None:
    groups = [NEW, during(Step.UNPAID, PAY, BACK), PACKING, during(ANY, BACK)]

    assert str(refusal(transitions=groups)) == said_of(
        BACK, f"never tried in Unpaid: the row {str(BACK)!r} before it takes every case"
    )


def test_a_row_of_any_that_overlaps_with_a_steps_own_is_refused() -> None:
    own = when(Returned, payment=CASH).go_to(Step.PACKING)
    every = [
        when(Returned, payment=[CARD, CASH]).go_to(Step.DONE),
        when(Returned, payment=Payment.INVOICE).go_to(Step.DONE),
    ]
    groups = [NEW, during(Step.UNPAID, PAY, own), PACKING, during(ANY, *every)]

    assert "overlaps with" in str(refusal(transitions=groups))


def test_the_guard_of_a_shared_row_must_hold_in_one_of_its_steps() -> None:
    start = START.set(payment=CARD)
    by_cash = when(Returned, payment=CASH).go_to(Step.DONE)
    otherwise = when(Returned).go_to(Step.DONE)
    pay = PAY.set(payment=CASH)

    def groups(paid: Any) -> list[Any]:
        rows = during([Step.UNPAID, Step.PACKING], by_cash, otherwise)
        return [during(Step.NEW, start), during(Step.UNPAID, paid), PACKING, rows]

    assert shop(*groups(pay)).decide(Step.UNPAID, DATA, Returned()).outcome == "moved"
    assert "its guard can never hold" in str(refusal(transitions=groups(PAY)))


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "during([]) names no step"),
        ([Step.UNPAID, Step.UNPAID], "names a step twice"),
        (["Unpaid"], "'Unpaid' is not one of its steps"),
        ("Unpaid", "'Unpaid' is not one of its steps"),
        (7, "7 is not one of its steps"),
    ],
    ids=str,
)
def test_a_group_names_its_steps(steps: Any, reason: str) -> None:
    groups = [NEW, UNPAID, PACKING, during(steps, BACK)]

    assert reason in str(refusal(transitions=groups))


class Backwards(frozenset[Any]):
    """A set as another process may have it: in another order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), reverse=True))


def test_steps_and_values_of_a_set_are_in_one_order_in_every_process() -> None:
    def made(form: type[frozenset[Any]]) -> Graph:
        row = when(Returned, payment=form(Payment)).go_to(Step.DONE)
        waiting = form([Step.UNPAID, Step.PACKING])
        return shop(NEW, during(waiting, row), UNPAID, PACKING).graph()

    class Forwards(Backwards):
        def __iter__(self) -> Iterator[Any]:
            return iter(sorted(frozenset.__iter__(self)))

    assert made(Forwards).fingerprint() == made(Backwards).fingerprint()


def test_any_stands_for_some_step() -> None:
    groups = [during(Step.NEW, when(Ordered).go_to(Step.DONE)), during(ANY, BACK)]
    final = [Step.UNPAID, Step.PACKING, Step.DONE]

    assert "ANY stands for no step" in str(refusal(transitions=groups, final=final))


# The picture


def test_the_table_says_what_becomes_of_each_event() -> None:
    found = shop(
        NEW,
        during(Step.UNPAID, PAY, park(Sent), park(Returned, payment=CARD)),
        during(Step.PACKING, SEND, ignore(Paid)),
        otherwise=reject,
    )

    rows = {node.id: cells for node, cells in transition_table(found.graph()).rows}
    said = {
        step: {cell.column: cell.otherwise for cell in cells if cell.otherwise}
        for step, cells in rows.items()
    }
    assert said == {
        "New": {},
        "Unpaid": {
            "Ordered": (("", "rejected"),),
            "Returned": (("payment = card", "parked"), ("", "rejected")),
        },
        "Packing": {
            "Ordered": (("", "rejected"),),
            "Paid": (("", "ignored"),),
            "Returned": (("", "rejected"),),
        },
    }
    text = transition_table(found.graph()).as_text()
    assert "[payment = card] parked<br>rejected" in text
    assert Graph.from_json(found.graph().to_json()) == found.graph()


def test_what_parks_alone_is_not_said_and_keeps_the_fingerprint() -> None:
    spoken = define(unpaid=[PAY, park(Sent, payment=CARD)], otherwise=park)

    assert spoken.graph().fingerprint() == define().graph().fingerprint()


def test_a_disposition_is_stored_as_before_it_could_have_a_guard() -> None:
    graph = define(unpaid=[PAY, ignore(Sent)]).graph()

    assert graph.dispositions == (Disposition("Unpaid", "Sent", "ignore"),)
    assert graph.to_json()["dispositions"] == [
        {"step": "Unpaid", "event": "Sent", "kind": "ignore"}
    ]
    assert "guard" in graph.to_json()["edges"][0]
    assert not {"at_once", "sets"} & graph.to_json()["edges"][0].keys()
