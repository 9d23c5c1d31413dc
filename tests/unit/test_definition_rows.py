"""The text of rows: on the diagram, in messages, in the table."""

from datetime import timedelta
from typing import Any

from orchestrator.definition import after, during, ignore, reject, stored, when
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.labels import spoken_delay
from tests.services.cases import cases
from tests.unit.shop import Data, Pack, Paid, Payment, Refund, Sent, Step


def large_amount(data: Any, event: Any) -> bool:
    return True


ROW = when(Paid, large_amount, payment=[Payment.CARD, Payment.CASH], final=True)


@cases(
    "row, text",
    (when(Sent), "Sent"),
    (
        ROW.issue(Pack, Refund).go_to(Step.PACKING),
        "Paid [large amount and payment = card, cash and final = yes] / Pack, Refund -> Packing",
    ),
    (
        when(Sent, parcel=stored("parcel")).go_to(Step.DONE),
        "Sent [parcel = stored parcel] -> Done",
    ),
    (after(timedelta(minutes=10)).issue(Pack), "after 10 minutes / Pack"),
    (ignore(Sent), "Sent"),
)
def test_a_row_reads_like_an_edge_label(row: TransitionRow, text: str) -> None:
    assert str(row) == text


@cases(
    "delay, text",
    (timedelta(seconds=1), "1 second"),
    (timedelta(minutes=90), "1 hour 30 minutes"),
    (timedelta(days=2, seconds=3), "2 days 3 seconds"),
    (timedelta(milliseconds=500), "0.5 seconds"),
    (timedelta(seconds=1.2), "1.2 seconds"),
    (timedelta(minutes=1, microseconds=1), "1 minute 0.000001 seconds"),
    (timedelta(minutes=1, seconds=20.25), "1 minute 20.25 seconds"),
    (timedelta(seconds=90), "1 minute 30 seconds"),
)
def test_a_delay_is_said_in_words(delay: timedelta, text: str) -> None:
    assert spoken_delay(delay) == text


def test_rows_are_values_and_are_never_changed() -> None:
    row = when(Sent)

    assert row.go_to(Step.DONE) is not row
    assert row.target is None
    assert when(Sent).go_to(Step.DONE) == when(Sent).go_to(Step.DONE)


def test_several_commands_and_settings_add_up() -> None:
    row = (
        when(Sent).set(gift=True).issue(Pack).set(parcel="x").issue(Refund, amount="n")
    )

    assert dict(row.sets) == {"gift": True, "parcel": "x"}
    assert [issue.command for issue in row.issues] == [Pack, Refund]
    assert [dict(issue.renames) for issue in row.issues] == [{}, {"amount": "n"}]


@cases("values", ["a", "b"], ("a", "b"), {"a", "b"})
def test_a_guard_takes_one_value_or_several(values: Any) -> None:
    [guard] = when(Sent, parcel=values).guards

    assert guard.holds("a", None)
    assert guard.holds("b", None)
    assert not guard.holds("c", None)


def test_a_guard_compares_with_the_stored_data() -> None:
    [guard] = when(Sent, parcel=stored("parcel")).guards
    data = Data("O-1", Payment.CARD, parcel="P-1")

    assert guard.holds("P-1", data)
    assert not guard.holds("P-2", data)


def test_dispositions_are_rows() -> None:
    group = during(Step.UNPAID, ignore(Sent), reject(Paid))

    assert [row.disposition for row in group.rows] == ["ignore", "reject"]
