"""System checks: what only the whole project can know, said before it runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connections
from pytest_django import Settings

from orchestrator import registry
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    during,
    step,
    then,
    undo,
    when,
)
from orchestrator.models import Definition, InboxEvent
from orchestrator.queue import CALLS, LONGEST_QUEUE
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    ParcelDelivered,
    ParcelPacked,
)
from tests.apps.process_managers.processes import Shipping

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the test change what is registered."""
    monkeypatch.setattr(registry, "twins", [])
    known = dict(registry.definitions)
    yield
    registry.definitions.clear()
    registry.definitions.update(known)


def found(*, databases: bool = False) -> list[CheckMessage]:
    messages = run_checks(databases=["default"] if databases else None)
    return [m for m in messages if str(m.id).startswith("orchestrator.")]


def ids(*, databases: bool = False) -> list[str]:
    return [str(message.id) for message in found(databases=databases)]


class Begun(Event):
    pass


class Sweep(Command):
    pass


def cleaning(
    name: str = "cleaning", event: type[Event] = Begun
) -> type[ProcessManager]:
    class Cleaning(ProcessManager):
        class Step(StrEnum):
            NEW = "New"
            DONE = "Done"

        @dataclass(frozen=True)
        class Data:
            room: str = ""

        transitions = [during(Step.NEW, when(event).issue(Sweep).go_to(Step.DONE))]

    Cleaning.name = name
    return Cleaning


def test_the_project_itself_is_in_order() -> None:
    assert found(databases=True) == []


def test_a_command_without_a_handler_is_an_error() -> None:
    registry.register(cleaning())

    [message] = found()
    assert message.id == "orchestrator.E001"
    assert message.msg == "Cleaning issues Sweep, which has no handler."
    assert "@handles(Sweep)" in str(message.hint)


def test_a_command_with_two_handlers_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [entry] = registry.command_handlers["BookCourier"]
    monkeypatch.setitem(registry.command_handlers, "BookCourier", [entry, entry])

    [message] = found()
    assert message.id == "orchestrator.E002"
    assert message.msg.startswith(f"{BookCourier.__name__} has 2 handlers: tests.")


def test_two_definitions_of_one_name_and_version_are_an_error() -> None:
    registry.register(Shipping)
    assert ids() == []
    registry.register(cleaning("shipping"))

    [message] = found()
    assert message.id == "orchestrator.E003"
    assert "are both shipping version 1" in message.msg
    assert registry.definition("shipping") is Shipping


def test_two_versions_of_one_name_are_in_order() -> None:
    other = cleaning("shipping")
    other.version = 2
    registry.register(other)

    assert "orchestrator.E003" not in ids()
    assert registry.definition("shipping") is other
    assert registry.definition("shipping", 1) is Shipping


def test_two_event_classes_of_one_name_are_an_error() -> None:
    twin = type("ParcelPacked", (Event,), {"__module__": "elsewhere"})
    registry.register(cleaning(event=twin))

    [message] = [m for m in found() if m.id == "orchestrator.E004"]
    assert "The event name ParcelPacked stands for" in message.msg
    assert ParcelPacked.__module__ in message.msg


def test_a_definition_that_changed_under_live_processes_is_an_error() -> None:
    place()
    Definition.objects.filter(name="shipping").update(fingerprint="0" * 64)
    found_ = found(databases=True)
    Definition.objects.filter(name="shipping").update(
        fingerprint=Shipping.graph().fingerprint()
    )

    [message] = found_
    assert message.id == "orchestrator.E005"
    assert "Shipping has changed, but 1 live instances run on version 1" in message.msg


def test_a_definition_that_changed_after_its_processes_ended_is_in_order() -> None:
    tell(underway(), ParcelDelivered("P-1"))
    Definition.objects.filter(name="shipping").update(fingerprint="0" * 64)

    assert ids(databases=True) == []


def test_a_queue_that_takes_pickle_is_warned_of(settings: Settings) -> None:
    settings.RQ_QUEUES = {
        "procession": {"URL": "redis://127.0.0.1:1/0"},
        "default": {"HOST": "of the project's own jobs"},
    }

    assert ids() == ["orchestrator.W001"]
    assert found()[0].msg == "The queue procession does not say that its jobs are JSON."


def test_a_project_without_the_default_queue_is_told_the_line_to_add(
    settings: Settings,
) -> None:
    settings.RQ_QUEUES = {"default": {"URL": "redis://127.0.0.1:1/0"}}

    [message] = found()
    assert message.id == "orchestrator.E009"
    _, line = str(message.hint).split("\n")
    exec(line, {"RQ_QUEUES": settings.RQ_QUEUES})  # noqa: S102  our own line
    assert found() == []


def test_a_project_without_any_queue_is_told_the_line_to_add(
    settings: Settings,
) -> None:
    del settings.RQ_QUEUES

    [message] = found()
    assert message.id == "orchestrator.E009"
    added: dict[str, Any] = {}
    exec(str(message.hint).split("\n")[1], added)  # noqa: S102  our own line
    settings.RQ_QUEUES = added["RQ_QUEUES"]
    assert found() == []


def test_the_name_by_which_rq_knows_the_default_queue_names_no_other(
    settings: Settings,
) -> None:
    other = cleaning("shipping")
    other.version, other.queue = 2, "procession"
    registry.register(other)

    message = next(m for m in found() if m.id == "orchestrator.E006")
    assert message.hint == "Leave the name of the queue out."


def test_times_without_a_zone_are_an_error(settings: Settings) -> None:
    settings.USE_TZ = False

    assert ids() == ["orchestrator.E010"]


def test_sqlite_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    database = connections["default"]
    with monkeypatch.context() as other:
        other.setattr(type(database), "vendor", "sqlite")
        other.setitem(database.settings_dict, "OPTIONS", {})
        [message] = found()
    assert message.id == "orchestrator.W002"
    databases: dict[str, dict[str, Any]] = {"default": {}}
    exec(str(message.hint).split("\n", 1)[1], {"DATABASES": databases})  # noqa: S102  our own line
    assert databases["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_another_kind_of_database_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(type(connections["default"]), "vendor", "mysql")
        assert ids() == ["orchestrator.E011"]


def sweep_floor() -> None:
    """Be a step."""


def mop_floor() -> None:
    """Be the next one."""


def litter() -> None:
    """Take the sweeping back."""


class Mopping(Workflow):
    """A step on a queue of its own."""

    flow = (then(sweep_floor, step(mop_floor, "mop", queue="wet")),)


def test_a_step_on_a_queue_that_does_not_exist_is_an_error(settings: Settings) -> None:
    registry.register(Mopping)
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, "dry": settings.RQ_QUEUES["procession"]}

    [message] = found()
    assert message.id == "orchestrator.E006"
    assert message.msg == (
        "The step mop of Mopping is to run on the queue wet, which does not exist; known queues: dry, procession."
    )


def test_a_step_on_a_queue_that_exists_is_in_order(settings: Settings) -> None:
    registry.register(Mopping)
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, "wet": settings.RQ_QUEUES["procession"]}

    assert found() == []


class Littering(Workflow):
    """What undoes a step is on a queue of its own."""

    flow = (then(sweep_floor, mop_floor), undo(sweep_floor, by=step(litter, queue="wet")))  # fmt: skip


def test_undoing_on_a_queue_that_does_not_exist_is_an_error() -> None:
    registry.register(Littering)

    [message] = found()
    assert message.msg.startswith(
        "What undoes sweep_floor of Littering is to run on the queue wet"
    )


def test_a_definition_on_a_queue_that_does_not_exist_is_an_error() -> None:
    other = cleaning("shipping")
    other.version, other.queue = 2, "wet"
    registry.register(other)

    message = next(m for m in found() if m.id == "orchestrator.E006")
    assert "Cleaning is to run on the queue wet" in message.msg


def test_a_queue_whose_name_is_too_long_for_its_column_is_an_error(
    settings: Settings,
) -> None:
    column = InboxEvent._meta.get_field("queue").max_length
    assert column == LONGEST_QUEUE + len(CALLS)
    names = ["q" * LONGEST_QUEUE, "q" * (LONGEST_QUEUE + 1)]
    queues = dict.fromkeys(names, settings.RQ_QUEUES["procession"])
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, **queues}
    for version, name in enumerate(names, 2):
        other = cleaning("shipping")
        other.version, other.queue = version, name
        registry.register(other)

    [message] = [one for one in found() if one.id == "orchestrator.E006"]
    assert message.hint == "Give it one of at most 44."


def test_a_handler_on_a_queue_that_does_not_exist_is_an_error(
    handler: SetHandler,
) -> None:
    handler(BookCourier, lambda command: None, after_commit=True, queue="wet")

    [message] = found()
    assert message.msg.startswith("The handler tests.console.test_engine_checks.")
    assert "is to run on the queue wet" in message.msg


def test_the_newest_version_is_the_one_that_starts() -> None:
    other = cleaning("shipping")
    other.version = 2
    registry.register(other)

    assert list(registry.newest()).count(Shipping) == 0
    assert other in registry.newest()
