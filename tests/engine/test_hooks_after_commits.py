"""A hook of `transaction.on_commit` that raises comes after the commit: it is told, and what follows is not charged."""

import logging
from collections.abc import Callable, Iterator

import pytest
from django.db import transaction

from orchestrator import registry, send_event
from orchestrator.definition import (
    Workflow,
    case,
    route,
    step,
)
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.definition.workflow.rows import then
from orchestrator.models import InboxEvent, Incident, IssuedCommand, StepRun
from orchestrator.signals import committed
from orchestrator.testing import registered, run, started
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler

__all__ = ["handler"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known"),
]

called: list[str] = []
given: list[Callable[[], None]] = []


def bad() -> None:
    called.append("bad")
    raise ValueError(called[0] * 2)


def leaving() -> None:
    called.append("leaving")
    raise SystemExit(2)


def good() -> None:
    called.append("good")


def register() -> None:
    """Give the commit hooks."""
    for hook in given:
        transaction.on_commit(hook)


HOOKS = ["bad", "leaving", "good"]


def charge() -> str:
    register()
    return "paid"


def follow(charge: str) -> str:
    called.append("follow")
    return charge


class Charging(Workflow):
    flow = (
        then(
            step(charge, transactional=True, idempotent=False),
            step(follow, idempotent=False),
        ),
    )


def decides(result: str) -> bool:
    register()
    return True


def begin() -> str:
    return "begun"


def end() -> None:
    called.append("end")


class Deciding(Workflow):
    flow = (
        step(begin, transactional=True),
        route(begin, case(decides, to=end), otherwise=step(end, "other")),
    )


def react(event: Opened) -> None:
    register()


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Charging, Deciding, Noting):
        yield


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """Let functions give hooks, and the invariants ask conditions without."""
    called.clear()
    given[:] = [bad, leaving, good]
    yield
    given.clear()


def told(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """Return what the log says about the hooks of some code."""
    lines = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    return [
        line for line in lines if line.startswith(f"what {name} left to the commit ")
    ]


def test_what_follows_a_transactional_step_goes_on_uncharged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = started(Charging)

    assert (process.status, process.result) == ("completed", "paid")
    assert called == [*HOOKS, "follow"]
    assert {run.attempt for run in StepRun.objects.all()} == {1}
    assert not Incident.objects.exists()
    ours = told(caplog, "charge")
    assert [("ValueError" in one, "SystemExit" in one) for one in ours] == [
        (True, False),
        (False, True),
    ]
    assert not any("badbad" in line for line in ours)


def test_what_follows_a_condition_goes_on_uncharged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = started(Deciding)

    assert (process.status, called) == ("completed", [*HOOKS, "end"])
    assert len(told(caplog, "a condition behind begin")) == 2


@pytest.mark.parametrize("kind", ["command", "reaction"])
def test_a_handler_inside_a_transaction_is_done_once(
    kind: str,
    handler: SetHandler,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if kind == "command":
        handler(Note, lambda command: register())
        started(Noting, Opened(1))
        name, attempts = "Note", InboxEvent.objects.values_list("attempt")
    else:
        handler(Note, lambda command: None)
        reaction = Handler(react, Opened, True, 4, 300, "default")
        monkeypatch.setitem(registry.reactions, "Opened", [reaction])
        send_event(Opened(1), id="1")
        run()
        name = reaction.name
        rows = IssuedCommand.objects.filter(type=name)
        attempts = rows.values_list("attempt")

    assert called == HOOKS
    assert list(attempts) == [(1,)]
    assert not Incident.objects.exists()
    assert len(told(caplog, name)) == 2


def test_hooks_of_what_is_rolled_back_are_not_called(handler: SetHandler) -> None:
    def fail(command: Note) -> None:
        register()
        raise ValueError("rolled back")

    handler(Note, fail)
    with pytest.raises(AssertionError, match="rolled back"):
        started(Noting, Opened(1))

    assert called == []


def test_a_receiver_of_the_signal_that_leaves_ends_no_worker() -> None:
    def leave(**told: object) -> None:
        raise SystemExit(2)

    committed.connect(leave)
    try:
        process = started(Charging)
    finally:
        committed.disconnect(leave)

    assert (process.status, process.result) == ("completed", "paid")
