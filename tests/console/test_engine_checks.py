"""System checks: what only the whole project can know, said before it runs."""

import json
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connections
from django.db.backends import postgresql
from pytest_django import Settings

from examples.order_listing.processes import OrderListing
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
from orchestrator.definition.messages import renamed
from orchestrator.models import Definition, InboxEvent
from orchestrator.queue import CALLS, LONGEST_QUEUE
from tests.apps.process_managers.desk import tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    ParcelDelivered,
    ParcelPacked,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.cases import cases

LIBRARY = """
from orchestrator.definition import Workflow, step
def sweep() -> None: ...
class Sweeping(Workflow):
    flow = (step(sweep),)
"""
PSYCOPG_ANY = "django.db.backends.postgresql.psycopg_any"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the test change what is registered."""
    monkeypatch.setattr(registry, "duplicates", [])
    known = dict(registry.definitions)
    yield
    registry.definitions.clear()
    registry.definitions.update(known)


def found(*, databases: bool = False) -> list[CheckMessage]:
    messages = run_checks(databases=["default"] if databases else None)
    return [m for m in messages if str(m.id).startswith("orchestrator.")]


def the_only(id: str, *, among: bool = False) -> CheckMessage:
    """Return the only message that is found, which has this id, or that with this id among others."""
    [one] = [one for one in found() if not among or one.id == f"orchestrator.{id}"]
    assert one.id == f"orchestrator.{id}"
    return one


def ids(*, databases: bool = False) -> list[str]:
    return [str(message.id) for message in found(databases=databases)]


def shipping(version: int = 2, queue: str = "") -> type[ProcessManager]:
    """Register another version of what there is."""
    other = cleaning("shipping")
    other.version = version
    if queue:
        other.queue = queue
    registry.register_definition(other)
    return other


def with_queues(settings: Settings, *names: str) -> None:
    """Add queues that are as the engine's own."""
    more = dict.fromkeys(names, settings.RQ_QUEUES["procession"])
    settings.RQ_QUEUES = {**settings.RQ_QUEUES, **more}


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
    registry.register_definition(cleaning())

    message = the_only("E001")
    assert message.msg == "Cleaning issues Sweep, which has no handler."
    assert "@handles(Sweep)" in str(message.hint)


def test_a_command_of_two_handlers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    [entry] = registry.command_handlers["BookCourier"]
    monkeypatch.setitem(registry.command_handlers, "BookCourier", [entry, entry])

    message = the_only("E002")
    assert message.msg.startswith(f"{BookCourier.__name__} has 2 handlers: tests.")


def test_two_definitions_of_one_name_and_version_are_an_error() -> None:
    registry.register_definition(Shipping)
    assert ids() == []
    shipping(version=1)

    message = the_only("E003")
    assert "are both shipping version 1" in message.msg
    assert registry.find_definition("shipping") is Shipping


def test_two_versions_of_one_name_are_in_order_and_the_newest_one_starts() -> None:
    other = shipping()

    assert "orchestrator.E003" not in ids()
    assert registry.find_definition("shipping") is other
    assert registry.find_definition("shipping", 1) is Shipping
    assert {other, Shipping} & {*registry.newest_definitions()} == {other}


def test_two_event_classes_of_one_name_are_an_error() -> None:
    twin = type("ParcelPacked", (Event,), {"__module__": "elsewhere"})
    registry.register_definition(cleaning(event=twin))

    message = the_only("E004", among=True)
    assert "The event name ParcelPacked stands for" in message.msg
    assert ParcelPacked.__module__ in message.msg


def test_an_alias_that_is_an_event_of_its_own_is_an_error() -> None:
    twin = types.new_class("ParcelWrapped", (Event,), {"aliases": "ParcelPacked"})
    registry.register_definition(cleaning(event=twin))
    try:
        message = the_only("E004", among=True)
    finally:
        del renamed["ParcelPacked"]
    assert "as an alias, for ParcelWrapped" in message.msg


def test_messages_under_other_names_are_no_other_definition() -> None:
    parcel = underway()
    rows = Definition.objects.filter(name="shipping")
    graph = rows.get().graph
    told = json.dumps(graph).replace("ParcelPacked", "ParcelWrapped")
    rows.update(graph=json.loads(told), fingerprint="0" * 64)
    assert parcel.finished_at is None
    assert [message.id for message in found(databases=True)] == ["orchestrator.E005"]

    renamed["ParcelWrapped"] = "ParcelPacked"
    try:
        assert found(databases=True) == []
    finally:
        del renamed["ParcelWrapped"]


def test_a_definition_that_changed_under_live_processes_is_an_error() -> None:
    parcel = underway()
    rows = Definition.objects.filter(name="shipping")
    rows.update(fingerprint="0" * 64)
    live = found(databases=True)
    rows.update(fingerprint=Shipping.graph().fingerprint())
    tell(parcel, ParcelDelivered("P-1"))
    rows.update(fingerprint="0" * 64)

    [message] = live
    assert message.id == "orchestrator.E005"
    assert "Shipping has changed, but 1 live instances run on version 1" in message.msg
    assert found(databases=True) == []  # once they have ended it is in order


def test_a_queue_that_takes_pickle_is_warned_of(settings: Settings) -> None:
    others = {"HOST": "of the project's own jobs"}
    ours = {"URL": "redis://127.0.0.1:1/0"}
    settings.RQ_QUEUES = {"procession": ours, "default": others}

    message = the_only("W001")
    assert message.msg == "The queue procession does not say that its jobs are JSON."


@cases("queues", None, {"default": {"URL": "redis://127.0.0.1:1/0"}})
def test_a_project_without_the_default_queue_is_told_the_line_to_add(
    queues: dict[str, Any] | None, settings: Settings
) -> None:
    """Also one without any queue."""
    del settings.RQ_QUEUES
    if queues:
        settings.RQ_QUEUES = queues

    message = the_only("E009")
    added: dict[str, Any] = {"RQ_QUEUES": queues}
    exec(str(message.hint).split("\n")[1], added)  # noqa: S102  our own line
    settings.RQ_QUEUES = added["RQ_QUEUES"]
    assert found() == []


def test_the_name_by_which_rq_knows_the_default_queue_names_no_other() -> None:
    shipping(queue="procession")

    message = the_only("E006", among=True)
    assert message.hint == "Leave the name of the queue out."


def test_times_without_a_zone_are_an_error(settings: Settings) -> None:
    settings.USE_TZ = False

    assert ids() == ["orchestrator.E010"]


def test_sqlite_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    database = connections["default"]
    with monkeypatch.context() as other:
        other.setattr(type(database), "vendor", "sqlite")
        other.setitem(database.settings_dict, "OPTIONS", {})
        message = the_only("W002")
    databases: dict[str, dict[str, Any]] = {"default": {}}
    exec(str(message.hint).split("\n", 1)[1], {"DATABASES": databases})  # noqa: S102  our own line
    assert databases["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_another_kind_of_database_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(type(connections["default"]), "vendor", "mysql")
        assert ids() == ["orchestrator.E011"]


def test_psycopg2_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PSYCOPG_ANY, ModuleType(PSYCOPG_ANY))
    monkeypatch.setattr(sys.modules[PSYCOPG_ANY], "is_psycopg3", False, raising=False)
    there = sys.modules[PSYCOPG_ANY]
    monkeypatch.setattr(postgresql, "psycopg_any", there, raising=False)
    with monkeypatch.context() as other:
        other.setattr(type(connections["default"]), "vendor", "postgresql")
        message = the_only("E017")
    assert "psycopg 3" in message.msg
    assert str(message.hint).endswith('pip install "psycopg[binary]>=3.3,<4"')


def test_a_definition_that_no_app_has_brought_is_named() -> None:
    del registry.definitions[OrderListing.name, OrderListing.version]

    message = the_only("W005", among=True)

    assert message.obj is OrderListing
    assert message.msg.startswith("examples.order_listing.processes.OrderListing is ")
    assert "Import it in examples.order_listing.processes" in str(message.hint)


def test_a_definition_of_a_library_is_named_where_an_app_imports_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library, processes = ModuleType("some_library"), ModuleType("shop.processes")
    monkeypatch.setitem(sys.modules, library.__name__, library)
    exec(LIBRARY, vars(library))  # noqa: S102  our own lines
    assert ids() == []

    vars(processes)["Sweeping"] = vars(library)["Sweeping"]
    registry.register_module(processes, "shop")

    message = the_only("W005")
    assert message.msg.startswith("some_library.Sweeping is a definition that no app")
    registry.imported.clear()


def test_what_a_test_or_a_function_declares_is_no_definition_of_an_app() -> None:
    class Within(Workflow):
        flow = (step(sweep_floor),)

    assert Within not in registry.unregistered_definitions()


def test_what_apps_have_brought_is_not_named() -> None:
    assert not {*registry.unregistered_definitions()} & {*registry.definitions.values()}


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
    registry.register_definition(Mopping)
    with_queues(settings, "dry")

    message = the_only("E006")
    said = "The step mop of Mopping is to run on the queue wet, which does not exist; "
    assert message.msg == f"{said}known queues: dry, procession."
    with_queues(settings, "wet")
    assert found() == []


class Littering(Workflow):
    """What undoes a step is on a queue of its own."""

    flow = (then(sweep_floor, mop_floor), undo(sweep_floor, by=step(litter, queue="wet")))  # fmt: skip


def test_undoing_a_definition_or_a_handler_on_a_queue_that_does_not_exist_is_an_error(
    handler: SetHandler,
) -> None:
    registry.register_definition(Littering)
    shipping(queue="wet")
    handler(BookCourier, lambda command: None, after_commit=True, queue="wet")

    said = " | ".join(one.msg for one in found() if one.id == "orchestrator.E006")
    of_handler = f"The handler {__name__}.[^ ]*"
    for what in ("What undoes sweep_floor of Littering", "Cleaning", of_handler):
        assert re.search(rf"\b{what} is to run on the queue wet", said), said


def test_a_queue_with_too_long_a_name_is_an_error(settings: Settings) -> None:
    column = InboxEvent._meta.get_field("queue").max_length
    assert column == LONGEST_QUEUE + len(CALLS)
    names = ["q" * LONGEST_QUEUE, "q" * (LONGEST_QUEUE + 1)]
    with_queues(settings, *names)
    for version, name in enumerate(names, 2):
        shipping(version, name)

    message = the_only("E006", among=True)
    assert message.hint == "Give it one of at most 44."


def test_a_definition_that_is_gone_while_processes_live_on_it_is_warned_of() -> None:
    underway()
    del registry.definitions["shipping", 1]
    [message] = found(databases=True)
    assert message.id == "orchestrator.W006"
    assert message.msg == "shipping is gone. Live processes: 1."


@cases(
    "subject, said",
    ("shop.Order", "No installed app with label 'shop'"),
    ("auth.Person", "doesn't have a 'Person' model"),
    ("auth.User.number", "has no field named 'number'"),
    ("auth.User.email", "auth.User.email is no column with unique values"),
)
def test_a_subject_is_a_unique_field_of_a_model(
    monkeypatch: pytest.MonkeyPatch, subject: str, said: str
) -> None:
    monkeypatch.setattr(Shipping, "subject", subject)

    message = the_only("E018")

    assert f"Shipping has the subject '{subject}', but" in message.msg
    assert said in message.msg
    assert message.obj is Shipping


def test_a_subject_needs_a_correlation_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shipping, "subject", "auth.User.username")
    assert found() == []

    monkeypatch.setattr(Shipping, "correlation", "")

    message = the_only("W008")
    assert "Shipping has the subject 'auth.User.username', but no" in message.msg
