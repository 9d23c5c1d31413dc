"""Makes the payments and enrolments known to the engine for a module of tests, and fills the tables with secrets."""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import pytest
from django.test import override_settings

from orchestrator import handles, reacts_to, registry, send_event, start_process
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.kept_secret.processes import (
    CODE,
    NUMBER,
    PASSWORD,
    PIN,
    Card,
    CardPayment,
    ChargeCard,
    Charged,
    CodeEntered,
    Enrolment,
    PaymentAsked,
    Person,
    charge,
    tell,
)

__all__ = ["Filled", "filled", "secretive"]


@pytest.fixture(scope="module")
def secretive() -> Iterator[None]:
    """Let the running code have the app that knows secrets."""
    handles(ChargeCard, after_commit=True, attempts=1)(charge)
    reacts_to(PaymentAsked, attempts=1)(tell)
    with registered(CardPayment, Enrolment):
        yield
    registry.command_handlers.pop("ChargeCard")
    registry.reactions.pop("PaymentAsked")


class Filled(NamedTuple):
    """Processes of which every table is full."""

    waiting: UUID
    failed: UUID
    enrolled: UUID
    failed_enrolment: UUID


def asked(payment: str) -> UUID:
    """A payment that waits for its code."""
    event = PaymentAsked(payment, 5, Card(NUMBER, "A. Person"), PIN, CODE)
    send_event(event, id=f"asked-{payment}", source="shop")
    run()
    return ProcessInstance.objects.get(correlation_key=payment).pk


@pytest.fixture(scope="module")
def filled(secretive: None, module_db: None) -> Iterator[Filled]:
    """One of each that waits, that has failed and that has ended, and events that nothing took; people are told."""
    with override_settings(PROCESSION_NOTICES={"ops": {"to": ["ops@example.org"]}}):
        yield _filled()


def _filled() -> Filled:
    waiting, failed = asked("P-1"), asked("P-2")
    send_event(CodeEntered("P-2", CODE), id="code-2", source="shop")
    # Nothing takes a code that is wrong, an event that comes too early, and one of a process that is not there.
    send_event(CodeEntered("P-1", f"{CODE}-wrong"), id="code-1", source="shop")
    send_event(Charged("P-1"), id="early", source="bank")
    lost = PaymentAsked("P-9", 1, Card(NUMBER), PIN, CODE)
    send_event(lost, id="lost", source="shop", process_id=UUID(int=7))
    send_event(CodeEntered("P-8", CODE), id="lost-code", source="shop")
    enrolled = start_process(Enrolment, Person("E-1", PASSWORD, ok=True)).process_id
    broken = start_process(Enrolment, Person("E-2", PASSWORD)).process_id
    run()
    pass_time(timedelta(hours=1))
    return Filled(waiting, failed, enrolled, broken)
