"""Dispositions of events that no row takes, and rows that several steps share."""

from collections.abc import Iterator
from typing import Any

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
from tests.services.cases import cases
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
from tests.unit.workflows import Backwards

CARD, CASH = Payment.CARD, Payment.CASH
DATA, BY_CASH = Data("O-1", CARD), Data("O-1", CASH)
BACK = when(Returned).go_to(Step.DONE)
BY_CASH_TO_PACKING = when(Returned, payment=CASH).go_to(Step.PACKING)
NEW = during(Step.NEW, START)
UNPAID = during(Step.UNPAID, PAY)
PACKING = during(Step.PACKING, SEND)
WORDS = ((ignore, "ignored"), (reject, "rejected"), (park, "parked"))


def is_small(data: Any, event: Any) -> bool:
    return bool(event.amount < 10)


async def is_slow(data: Any, event: Any) -> bool:
    return True


def shop(*groups: Any, **attributes: Any) -> type[ProcessManager]:
    return define(transitions=groups, **attributes)


def outcome(cls: type[ProcessManager], step: Step, event: Any, data: Any = DATA) -> str:
    return cls.decide(step, data, event).outcome


# Guards


@cases("row, word", *WORDS)
def test_a_disposition_has_guards_like_any_row(row: Any, word: str) -> None:
    found = define(unpaid=[row(Paid, final=False), PAY])

    assert outcome(found, Step.UNPAID, Paid(3, final=False)) == word
    assert outcome(found, Step.UNPAID, Paid(3)) == "moved"


FINAL_BY_CARD = when(Paid, final=True, payment=CARD).go_to(Step.PACKING)
STALE = when(Sent, parcel=stored("parcel")).go_to(Step.DONE)
IGNORING = during(Step.UNPAID, PAY, otherwise=ignore)
IGNORED_IF_SMALL = define(unpaid=[ignore(Paid, is_small), PAY])
REJECTED_BY_CASH = define(unpaid=[PAY, reject(Returned, payment=CASH)])
MOVES_ALONE = "only a row that moves sets fields, issues commands"
REJECTING = define(otherwise=reject)
PARKING_SENT = define(unpaid=[PAY, park(Sent)], otherwise=reject)
EACH_ITS_OWN = shop(NEW, IGNORING, PACKING, otherwise=reject)


@cases(
    "found, step, data, event, word",
    # predicates
    (IGNORED_IF_SMALL, Step.UNPAID, DATA, Paid(3), "ignored"),
    (IGNORED_IF_SMALL, Step.UNPAID, DATA, Paid(30), "moved"),
    # cases that a guarded disposition leaves are parked when no row moves
    (REJECTED_BY_CASH, Step.UNPAID, BY_CASH, Returned(), "rejected"),
    (REJECTED_BY_CASH, Step.UNPAID, DATA, Returned(), "parked"),
    # a class declares the disposition of events without a row
    *(
        (define(otherwise=otherwise), Step.UNPAID, DATA, event, word)
        for otherwise, word in WORDS
        for event in (Sent("P-1"), Ordered("O-2", CARD))
    ),
    # and a step for itself
    (EACH_ITS_OWN, Step.UNPAID, DATA, Sent("P-1"), "ignored"),
    (EACH_ITS_OWN, Step.PACKING, DATA, Paid(3), "rejected"),
    # which may park what can come early
    (PARKING_SENT, Step.UNPAID, DATA, Sent("P-1"), "parked"),
    (PARKING_SENT, Step.UNPAID, DATA, Returned(), "rejected"),
    # before the process nothing is rejected
    (REJECTING, Step.NEW, None, Sent("P-1"), "parked"),
    # a stale answer has the default disposition
    (
        define(packing=[STALE, BACK], otherwise=reject),
        *(Step.PACKING, DATA, Sent("P-2"), "rejected"),
    ),
)
def test_what_becomes_of_an_event_that_no_row_takes(
    found: type[ProcessManager], step: Step, data: Any, event: Any, word: str
) -> None:
    assert outcome(found, step, event, data) == word


def test_after_the_process_nothing_is_rejected() -> None:
    assert REJECTING.default_disposition(REJECTING.Step("Done")) == "park"


@cases(
    "unpaid, reason",
    # beside a row that moves the cases must be covered
    ([FINAL_BY_CARD, ignore(Paid, final=False)], "a gap in Unpaid: no row takes Paid"),
    # guards must not overlap with others
    (
        [ignore(Paid, final=True), when(Paid, final=[True, False]).go_to(Step.PACKING)],
        "overlaps with 'Paid [final = yes]' when final = yes",
    ),
    # a row that does not move has no other effect
    ([PAY, ignore(Sent).set(gift=True)], MOVES_ALONE),
    ([PAY, reject(Sent).issue(Pack)], MOVES_ALONE),
    ([PAY, park(Sent).go_to(Step.DONE)], MOVES_ALONE),
    ([PAY, reject(Sent).escalate()], MOVES_ALONE),
    ([ignore(Paid, lambda data, event: True), PAY], "named functions"),
    ([when(Paid, is_slow).go_to(Step.PACKING), PAY], "is_slow is asynchronous"),  # type: ignore[arg-type]  # the mistake
)
def test_rows_that_contradict_are_refused(unpaid: list[Any], reason: str) -> None:
    assert reason in str(refusal(unpaid=unpaid))


def test_the_guard_of_a_disposition_can_hold() -> None:
    by_cash = ignore(Returned, payment=CASH)

    found = refusal(new=[START.set(payment=CARD)], unpaid=[PAY, by_cash])

    never = "its guard can never hold: the data never has these values here"
    assert found.reason == never


# What is not listed


def test_a_step_lists_what_it_does_not_only_park() -> None:
    found = shop(
        NEW,
        during(Step.UNPAID, PAY, park(Sent), ignore(Returned, payment=CASH)),
        during(Step.PACKING, SEND, park(Paid), otherwise=reject),
    )

    assert found.handled_events("Unpaid") == {"Paid", "Returned"}
    assert found.handled_events("Packing") == {"Ordered", "Sent", "Returned"}


# Several steps


def test_a_row_may_be_shared_by_steps() -> None:
    found = shop(NEW, UNPAID, PACKING, during([Step.UNPAID, Step.PACKING], BACK))

    for step in (Step.UNPAID, Step.PACKING):
        assert found.decide(step, DATA, Returned()).step == Step.DONE
    edges = found.graph().edges
    returned = [(one.source, one.target) for one in edges if one.event == "Returned"]
    assert returned == [("Unpaid", "Done"), ("Packing", "Done")]
    assert len({edge.id for edge in edges}) == 5


def test_any_stands_for_every_step_in_which_a_process_waits() -> None:
    found = shop(during(ANY, BACK), NEW, UNPAID, PACKING)

    assert found.decide(Step.UNPAID, DATA, Returned()).step == Step.DONE
    assert found.decide(Step.PACKING, DATA, Returned()).step == Step.DONE
    assert found.starting_events() == {"Ordered"}
    assert Step.DONE not in found.rows
    assert found.graph() == shop(NEW, UNPAID, PACKING, during(ANY, BACK)).graph()


def test_a_steps_own_rows_come_before_those_of_any() -> None:
    own = during(Step.UNPAID, PAY, BY_CASH_TO_PACKING)
    found = shop(during(ANY, BACK), NEW, own, PACKING)

    assert found.decide(Step.UNPAID, BY_CASH, Returned()).step == Step.PACKING
    assert found.decide(Step.UNPAID, DATA, Returned()).step == Step.DONE


def test_a_row_of_any_that_a_step_never_tries_is_refused() -> None:
    groups = [NEW, during(Step.UNPAID, PAY, BACK), PACKING, during(ANY, BACK)]

    assert str(refusal(transitions=groups)) == said_of(
        BACK, f"never tried in Unpaid: the row {str(BACK)!r} before it takes every case"
    )


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


NOTHING_WAITS = "nothing waits there, so there is no otherwise"
REJECTED_START = during(Step.NEW, START, otherwise=reject)
OWN = during(Step.UNPAID, PAY, BY_CASH_TO_PACKING)
CARD_OR_CASH = when(Returned, payment=[CARD, CASH]).go_to(Step.DONE)
BY_INVOICE = when(Returned, payment=Payment.INVOICE).go_to(Step.DONE)
NO_STEP = [during(Step.NEW, when(Ordered).go_to(Step.DONE)), during(ANY, BACK)]
ONLY_FINAL = {"final": [Step.UNPAID, Step.PACKING, Step.DONE]}


def beside(*groups: Any) -> list[Any]:
    return [NEW, UNPAID, PACKING, *groups]


@cases(
    "groups, more, reason",
    # otherwise is declared once, for a step in which a process waits
    (beside(), {"otherwise": "reject"}, "otherwise='reject': it must"),
    (beside(), {"otherwise": when}, "otherwise=when: it must be park"),
    (
        [NEW, IGNORING, PACKING, during(Step.UNPAID, BACK, otherwise=reject)],
        {},
        "Unpaid says twice what becomes of an event that no row takes",
    ),
    ([REJECTED_START, UNPAID, PACKING], {}, f"New: {NOTHING_WAITS}"),
    (beside(during(Step.DONE, otherwise=reject)), {}, f"Done: {NOTHING_WAITS}"),
    (
        beside(during(ANY, BACK, otherwise=reject)),
        {},
        "ANY: what holds for all steps is said by the class: otherwise = reject",
    ),
    # a group names its steps
    (beside(during([], BACK)), {}, "during([]) names no step"),
    (beside(during([Step.UNPAID] * 2, BACK)), {}, "names a step twice"),
    *(
        (beside(during(steps, BACK)), {}, "'Unpaid' is not one of its steps")  # type: ignore[arg-type]  # the mistake
        for steps in (["Unpaid"], "Unpaid")
    ),
    (beside(during(7, BACK)), {}, "7 is not one of its steps"),  # type: ignore[arg-type]  # the mistake
    # a row of ANY does not overlap with a step's own, and stands for some step
    ([NEW, OWN, PACKING, during(ANY, CARD_OR_CASH, BY_INVOICE)], {}, "overlaps with"),
    (NO_STEP, ONLY_FINAL, "ANY stands for no step"),
)
def test_groups_are_refused(groups: list[Any], more: Any, reason: str) -> None:
    assert reason in str(refusal(transitions=groups, **more))


def test_steps_and_values_of_a_set_are_in_one_order_in_every_process() -> None:
    def made(form: type[frozenset[Any]]) -> Graph:
        row = when(Returned, payment=form(Payment)).go_to(Step.DONE)
        waiting = form([Step.UNPAID, Step.PACKING])
        return shop(NEW, during(waiting, row), UNPAID, PACKING).graph()

    class Forwards(Backwards):
        def __iter__(self) -> Iterator[Any]:
            return iter(sorted(frozenset.__iter__(self)))

    assert made(Forwards).fingerprint() == made(Backwards).fingerprint()


# The picture


def test_the_table_says_what_becomes_of_each_event() -> None:
    found = shop(
        NEW,
        during(Step.UNPAID, PAY, park(Sent), park(Returned, payment=CARD)),
        during(Step.PACKING, SEND, ignore(Paid)),
        otherwise=reject,
    )

    said = {
        (node.id, cell.column): cell.otherwise
        for node, cells in transition_table(found.graph()).rows
        for cell in cells
        if cell.otherwise
    }
    assert said == {
        ("Unpaid", "Ordered"): (("", "rejected"),),
        ("Unpaid", "Returned"): (("payment = card", "parked"), ("", "rejected")),
        ("Packing", "Ordered"): (("", "rejected"),),
        ("Packing", "Paid"): (("", "ignored"),),
        ("Packing", "Returned"): (("", "rejected"),),
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
