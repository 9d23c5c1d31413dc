"""Many starts at once: by few statements and one commit, each with the outcome that it has alone."""

import random
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestrator import (
    ProcessStart,
    astart_processes,
    send_event,
    start_process,
    start_processes,
)
from orchestrator.definition import (
    Event,
    ProcessManager,
    Workflow,
    during,
    each,
    secret,
    then,
    wait,
    when,
)
from orchestrator.exceptions import (
    ConflictingEvent,
    InvalidMessage,
    KeyTaken,
    OneRefused,
    StartRefused,
    UnknownDefinition,
)
from orchestrator.models import Definition, InboxEvent, ProcessInstance
from orchestrator.testing import registered, run
from tests.apps.process_managers.fixtures import SetHandler, handler
from tests.apps.process_managers.messages import PackParcel, ParcelOrdered
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import together
from tests.apps.wide_graphs import processes as graphs
from tests.services.crews import knowing
from tests.services.doing import taking
from tests.services.left import left_by

__all__ = ["handler"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


class Signed(Event):
    loan: str


signed = wait(Signed, "signature")


def look() -> list[int]:
    return [1, 2]


def note(item: int) -> int:
    return item


def add(note: list[int]) -> int:
    return sum(note)


class Loan(Workflow):
    """Waits for an event by its key."""

    @dataclass(frozen=True)
    class Input:
        loan: str
        text: str = ""
        wrong: bool = False

    correlation = "loan"
    outside_ids = ("text",)
    flow = (then(signed, look),)

    @staticmethod
    def summary(input: Input) -> str:
        if input.wrong:
            raise ValueError("this loan has no summary")
        return f"Loan {input.loan}"


class Mapped(Workflow):
    """Begins with a step and a map."""

    flow = (each(look, over="", do=note, into=add),)


class Signing(Workflow):
    """Has an input that can change, with a secret."""

    @dataclass
    class Input:
        name: str
        pin: str = secret(default="")

    correlation = "name"
    flow = (then(signed, look),)

    @staticmethod
    def summary(input: Input) -> str:
        return f"{input.name} {input.pin}"


class Weighing(ProcessManager):
    """Starts with the same event as another definition."""

    class Step(StrEnum):
        NEW = "New"
        WEIGHED = "Weighed"

    @dataclass(frozen=True)
    class Data:
        parcel_id: str

    correlation = "parcel_id"
    transitions = (during(Step.NEW, when(ParcelOrdered).go_to(Step.WEIGHED)),)


known = knowing(Loan, Mapped, Signing, graphs.Broad)


@pytest.fixture(autouse=True)
def packing(handler: SetHandler) -> None:
    """Let a parcel be packed any number of times."""
    handler(PackParcel, taking)


def starts_of_all_kinds(chance: random.Random) -> list[ProcessStart]:
    """Return starts in any order; their ids are the same in each call with the same seed."""
    made: list[ProcessStart] = []
    for number in range(40):
        name = f"{number} \U0001f600 ' \" %s"
        pk = UUID(int=chance.getrandbits(128), version=4)
        breadth = graphs.Breadth(chance.randint(2, 12))
        made += [
            ProcessStart(Shipping, ParcelOrdered(f"P-{name}"), process_id=pk),
            ProcessStart(
                Loan, Loan.Input(f"L-{name}", text=name), id=name, source="bank"
            ),
            ProcessStart("mapped", id=name),
            ProcessStart(graphs.Broad, breadth, id=name),
            ProcessStart(Mapped, id=name, source="other", correlation_key=f"M-{name}"),
        ]
    return chance.sample(made, len(made))


def singly(starts: Iterable[ProcessStart]) -> list[Any]:
    return [start_process(one.definition, one.event, **about(one)) for one in starts]


def about(start: ProcessStart) -> dict[str, Any]:
    names = ("id", "source", "process_id", "correlation_key")
    return {name: getattr(start, name) for name in names}


def loans(*names: str, **more: Any) -> list[ProcessStart]:
    return [ProcessStart(Loan, Loan.Input(name, **more), id=name) for name in names]


def orders(number: int) -> list[ProcessStart]:
    return [
        ProcessStart(Shipping, ParcelOrdered(f"P-{n}"), id=f"P-{n}", source="web")
        for n in range(number)
    ]


def known_loans() -> list[str]:
    rows = ProcessInstance.objects.filter(name="loan").order_by("correlation_key")
    return list(rows.values_list("correlation_key", flat=True))


def test_starts_together_leave_the_rows_that_they_leave_one_by_one() -> None:
    starts = starts_of_all_kinds(random.Random(3))

    def begin(how: Any) -> None:
        # One event is early, and is taken at the start.
        send_event(Signed(starts_key(starts)), id="early")
        run()
        how(starts)

    many = left_by(partial(begin, start_processes))
    few = left_by(partial(begin, singly))
    for table, rows in few.items():
        assert many[table] == rows, table
    assert len(many["ProcessInstance"]) == 160


def starts_key(starts: Iterable[ProcessStart]) -> Any:
    return next(one.event.loan for one in starts if one.definition is Loan)


def test_each_gets_the_receipt_that_it_gets_alone_in_their_order() -> None:
    starts = starts_of_all_kinds(random.Random(5))
    found = start_processes(iter(starts))
    run()
    again = start_processes(starts)

    assert [one.process_id for one in again] == [one.process_id for one in found]
    assert {one.repeated for one in found} == {False}
    assert {one.repeated for one in again} == {True}
    assert [one.process_id for one in singly(starts)] == [
        one.process_id for one in found
    ]
    assert ProcessInstance.objects.count() == 200
    assert not ProcessInstance.objects.exclude(status__in=["completed", "waiting"])


@pytest.mark.parametrize("number", [25, 100])
def test_a_hundred_cost_as_many_statements_as_a_few(number: int) -> None:
    begin = partial(start_processes, [ProcessStart(Mapped) for _ in range(number)])
    if connection.vendor == "postgresql":
        start_processes(
            [ProcessStart(Mapped), ProcessStart(Mapped)]
        )  # its definition is stored
        with CaptureQueriesContext(connection) as asked:
            begin()
        assert len(asked) <= 5, asked.captured_queries
    else:
        begin()
    assert ProcessInstance.objects.filter(name="mapped").count() >= number


@pytest.mark.once
def test_processes_of_one_workflow_look_up_its_stored_definition_once() -> None:
    def look_ups(number: int) -> int:
        with CaptureQueriesContext(connection) as asked:
            start_processes([ProcessStart(Mapped) for _ in range(number)])
        return sum(Definition._meta.db_table in one["sql"] for one in asked)

    look_ups(2)  # its definition is stored
    assert [look_ups(2), look_ups(9)] == [1, 1]


def test_those_before_a_refused_one_are_started_and_those_after_it_are_not() -> None:
    start_processes(loans("c"))
    for wrong, reason in (
        (ProcessStart(Loan, Loan.Input("c")), KeyTaken),
        (ProcessStart(Loan, Loan.Input("c", "another"), id="c"), ConflictingEvent),
        (ProcessStart(Loan, Loan.Input("x", wrong=True)), ValueError),
        (ProcessStart(Loan, "x"), InvalidMessage),
        (ProcessStart(Shipping, Signed("x")), InvalidMessage),
        (ProcessStart("no such thing"), UnknownDefinition),
        (Loan, InvalidMessage),
    ):
        before = [ProcessStart(Loan, Loan.Input(f"a {uuid4()}")) for _ in range(3)]
        after = [ProcessStart(Loan, Loan.Input(f"z {uuid4()}"))]
        with pytest.raises(StartRefused) as refused:
            start_processes([*before, wrong, *after])  # type: ignore[list-item]
        error = refused.value
        assert (error.place, len(error.receipts)) == (3, 3), wrong
        assert isinstance(error.reason, reason)
        assert isinstance(error, OneRefused)
        assert "start 3, counted from 0: " in str(error)
    assert sum(name.startswith("a ") for name in known_loans()) == 21
    assert not any(name.startswith("z ") for name in known_loans())


def test_one_key_or_one_id_twice_in_one_call() -> None:
    with pytest.raises(StartRefused) as refused:
        start_processes([*loans("a"), ProcessStart(Loan, Loan.Input("a"), id="other")])
    assert isinstance(refused.value.reason, KeyTaken)
    first, second = start_processes(loans("b", "b"))
    assert (first.repeated, second.repeated) == (False, True)
    assert first.process_id == second.process_id

    order = ProcessStart(Shipping, ParcelOrdered("P-1"), id="order", source="web")
    first, second = start_processes([order, order])
    assert (first.process_id, second.repeated) == (second.process_id, True)
    other = ProcessStart(Shipping, ParcelOrdered("P-2"), id="order", source="web")
    with pytest.raises(StartRefused, match="before with another content"):
        start_processes([order, other])


def test_a_caller_may_use_one_input_object_again() -> None:
    def reused() -> Iterator[ProcessStart]:
        one = Signing.Input("")
        for name in "abc":
            one.name, one.pin = name, f"pin of {name}"
            yield ProcessStart(Signing, one)

    start_processes(reused())

    rows = ProcessInstance.objects.filter(name="signing").order_by("correlation_key")
    assert [(one.correlation_key, one.data["name"]) for one in rows] == [
        (name, name) for name in "abc"
    ]
    assert [one.summary.split(" ")[0] for one in rows] == ["a", "b", "c"]
    assert not any("pin of" in one.summary for one in rows)


def test_an_error_can_be_copied_whatever_its_reason_says() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert "counted from 0: Silent" in str(StartRefused([1], Silent()))
    error = copy(StartRefused([1], KeyError("x")))
    assert (error.place, type(error.reason)) == (1, KeyError)


def test_an_input_of_another_class_is_named_without_its_fields() -> None:
    with pytest.raises(StartRefused, match=r"not with Signing\.Input") as no:
        start_processes([ProcessStart(Loan, Signing.Input("a", "hidden"))])
    assert "hidden" not in str(no.value)


def test_one_id_starts_one_definition_alone() -> None:
    with registered(Weighing):
        first = ProcessStart(Shipping, ParcelOrdered("P-1"), id="1", source="web")
        other = ProcessStart(Weighing, ParcelOrdered("P-1"), id="1", source="web")
        start_processes([first])
        for starts in ([other], [ProcessStart(Mapped), other]):
            with pytest.raises(StartRefused, match="before with another content"):
                start_processes(starts)


def test_repeats_of_live_processes_cost_few_statements() -> None:
    starts = [*loans(*map(str, range(50))), *orders(50)]
    start_processes(starts)
    run()
    with CaptureQueriesContext(connection) as asked:
        assert all(one.repeated for one in start_processes(starts))
    if connection.vendor == "postgresql":
        assert len(asked) < 20


def test_inside_the_callers_transaction_all_are_part_of_it() -> None:
    with transaction.atomic():
        start_processes(
            [*loans("a", "b"), ProcessStart(Shipping, ParcelOrdered("P-1"))]
        )
        with pytest.raises(StartRefused):  # and it stays usable
            start_processes([*loans("c"), ProcessStart(Loan, Loan.Input("a"))])
        assert known_loans() == ["a", "b", "c"]
        transaction.set_rollback(True)
    assert (known_loans(), InboxEvent.objects.count()) == ([], 0)


@pytest.mark.django_db(transaction=True)
def test_two_who_start_the_same_at_once_start_each_once() -> None:
    given = loans(*(f"L-{number}" for number in range(60))) + orders(60)
    found = together(
        partial(start_processes, given), partial(start_processes, given[::-1])
    )
    first, second = found
    assert [one.process_id for one in first] == [one.process_id for one in second[::-1]]
    run()
    assert ProcessInstance.objects.count() == 120


def test_asynchronous_code_awaits_them() -> None:
    found = async_to_sync(astart_processes)(loans("a", "b"))
    assert [one.process_id for one in found] == [
        one.process_id for one in start_processes(loans("a", "b"))
    ]
