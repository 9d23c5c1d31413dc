"""Failures of one defect are one group though their texts name what they are about; other defects are other groups."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType

import pytest
from django.apps import AppConfig, apps

from examples.order_listing.messages import (
    Destination,
    ListedOnInternal,
    RequestExternalCreation,
)
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.definition import Workflow, start, step
from orchestrator.definition import run as run_part
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.engine.change.incidents import fingerprint
from orchestrator.models import Incident
from orchestrator.registry import reactions
from orchestrator.testing import (
    failing,
    pass_time,
    replaced,
    run,
    started,
)
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

NAMES = ("Ann Lee", "Bo", "Дана", "佐藤")
Function = Callable[[str], None]


def ship(name: str) -> None: ...


class Parcel(Workflow):
    @dataclass(frozen=True)
    class Input:
        name: str

    flow = (start(step(ship, retries=0)),)


def groups() -> int:
    found = Incident.objects.open().values_list("fingerprint", flat=True)
    return len(set(found))


def groups_of(*functions: Function) -> int:
    """Have parcels of every name fail by each of the functions; return the number of groups."""
    processes = []
    for function in functions:
        with replaced(ship, function):
            processes += [started(Parcel, Parcel.Input(name)) for name in NAMES]
    rows = Incident.objects.filter(instance__in=[one.id for one in processes])
    assert len(rows) == len(NAMES) * len(functions)
    return len({row.fingerprint for row in rows})


# The application's own functions


class Refused(Exception):
    """An error of a shared wrapper."""


def initials(name: str) -> str:
    return f"{name[::-1]} of {name[:1]}"


def no_address(name: str) -> None:
    raise LookupError(f"no address for {initials(name)}")


def no_scale(name: str) -> None:
    raise LookupError(f"no scale for {initials(name)}")


def no_entry(name: str) -> None:
    dict[str, str]()[initials(name)]


def refused(function: Function) -> Function:
    """Raise another error from whatever a function raises."""

    @wraps(function)
    def call(name: str) -> None:
        try:
            function(name)
        except LookupError as error:
            raise Refused(f"refused: {error}") from error

    return call


def hidden(function: Function) -> Function:
    """Raise another error where a function raises, without naming it."""

    @wraps(function)
    def call(name: str) -> None:
        try:
            function(name)
        except LookupError as error:
            text = f"refused: {error}"
            raise Refused(text)  # noqa: B904  # as applications do

    return call


def noted(function: Function) -> Function:
    """Raise on what a function raises."""

    @wraps(function)
    def call(name: str) -> None:
        try:
            function(name)
        except LookupError as error:
            error.add_note(name)
            raise

    return call


def together(*functions: Function) -> Function:
    """Call functions beside each other; they fail in either order."""

    async def each(name: str) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in functions[:: -1 if name == "Bo" else 1]:
                tasks.create_task(called(one, name))

    async def called(function: Function, name: str) -> None:
        function(name)

    def call(name: str) -> None:
        asyncio.run(each(name))

    return call


ONE_DEFECT: dict[str, Function] = {
    "its own function": no_address,
    "a missing key": no_entry,
    "a wrapper that names it": refused(no_address),
    "a wrapper that does not": hidden(no_address),
    "a wrapper that raises on": noted(no_address),
    "a group of errors": together(no_address, no_scale),
}


def test_a_defect_is_one_group_whatever_its_texts_name() -> None:
    found = {told: groups_of(function) for told, function in ONE_DEFECT.items()}

    assert found == dict.fromkeys(ONE_DEFECT, 1)


TWO_DEFECTS: dict[str, tuple[Function, Function]] = {
    "two functions": (no_address, no_scale),
    "two classes": (no_address, no_entry),
    "behind a wrapper that names them": (refused(no_address), refused(no_scale)),
    "behind a wrapper that does not": (hidden(no_address), hidden(no_scale)),
    "in groups of errors": (together(no_address), together(no_scale)),
}


def test_two_defects_are_two_groups() -> None:
    found = {told: groups_of(*functions) for told, functions in TWO_DEFECTS.items()}

    assert found == dict.fromkeys(TWO_DEFECTS, 2)


# An application in site-packages

PACKAGE = """
def initials(name):
    return f"{name[::-1]} of {name[:1]}"


def no_address(name):
    raise LookupError(f"no address for {initials(name)}")


def no_scale(name):
    raise LookupError(f"no scale for {initials(name)}")


def address(name):
    from installed_library import lookup

    lookup(initials(name))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An application's package in site-packages, and a library there."""
    folder = tmp_path / "site-packages"
    (folder / "installed_app").mkdir(parents=True)
    (folder / "installed_app/__init__.py").touch()
    (folder / "installed_app/work.py").write_text(PACKAGE)
    library = "def lookup(name):\n    raise LookupError(f'{name} is lost')\n"
    (folder / "installed_library.py").write_text(library)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("installed_app.work")
    for name in ("installed_app", "installed_app.work", "installed_library"):
        sys.modules.pop(name, None)


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have packages be apps of `INSTALLED_APPS`."""
    for name in names:
        config = AppConfig(name, importlib.import_module(name))
        monkeypatch.setitem(apps.app_configs, name, config)


def test_a_library_in_site_packages_is_grouped_by_its_texts(
    package: ModuleType,
) -> None:
    assert groups_of(package.no_address) == len(NAMES)


def test_an_installed_app_in_site_packages_is_grouped_by_its_functions(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "installed_app")

    assert groups_of(package.no_address) == 1
    assert groups_of(package.no_address, package.no_scale) == 2


def test_a_module_in_site_packages_that_defines_a_handler_is_grouped_by_its_functions(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Handler(package.no_address, ListedOnInternal, True, 4, 5, "default")
    monkeypatch.setitem(reactions, "ListedOnInternal", [handler])

    assert groups_of(package.no_address, package.no_scale) == 2
    assert groups_of(package.address) == 1


def test_an_app_that_defines_something_comes_before_another_one(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "installed_app", "installed_library")
    handler = Handler(package.address, ListedOnInternal, True, 4, 5, "default")
    monkeypatch.setitem(reactions, "ListedOnInternal", [handler])
    with replaced(ship, package.address):
        started(Parcel, Parcel.Input("Bo"))
    told = Incident.objects.get()
    expected = "LookupError in installed_app.work.address"

    about = (told.kind, "parcel", "ship", "", told.error)
    assert told.fingerprint == fingerprint(*about, expected)


def test_a_failure_of_a_package_keeps_its_earlier_fingerprint(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "installed_app")
    with replaced(ship, package.no_address):
        started(Parcel, Parcel.Input("Bo"))
    told = Incident.objects.get()

    about = (told.kind, "parcel", "ship", told.message, told.error)
    assert told.place == "installed_app.work.no_address"
    assert told.earlier == fingerprint(*about, told.place)


# Sub-processes


class Crate(Workflow):
    Input = Parcel.Input
    flow = (run_part(Parcel, "parcel"),)


known = knowing(Parcel, Crate)


def groups_of_crates(*functions: Function) -> int:
    """Have crates fail since their parcels fail by each of the functions; return the number of their groups."""
    for function in functions:
        with replaced(ship, function):
            for name in NAMES:
                started(Crate, Parcel.Input(name))
    rows = Incident.objects.filter(instance__name="crate")
    assert len(rows) == len(NAMES) * len(functions)
    return len({row.fingerprint for row in rows})


def test_a_process_whose_sub_process_failed_is_in_one_group_for_one_cause() -> None:
    assert groups_of_crates(no_address) == 1


def test_the_failure_of_a_sub_process_keeps_its_earlier_fingerprint() -> None:
    groups_of_crates(no_address)
    told = Incident.objects.filter(instance__name="crate").latest("pk")

    about = (told.kind, "crate", "parcel", told.message, told.error)
    assert told.earlier == fingerprint(*about, "")


def test_sub_processes_that_failed_by_two_defects_are_two_groups_of_their_parents() -> (
    None
):
    assert groups_of_crates(no_address, no_scale) == 2


# Errors that cannot be looked into


class Closed(ExceptionGroup[Exception]):
    """A group whose members cannot be had."""

    @property
    def exceptions(self) -> tuple[Exception, ...]:
        raise ValueError("closed")


def of_no_module(name: str) -> None:
    raise eval("type('Lost', (Exception,), {})(name)", {"name": name})  # noqa: S307


def closed(name: str) -> None:
    raise Closed(name, [ValueError()])


@pytest.mark.parametrize(
    ("function", "said"), [(of_no_module, "Lost: Bo"), (closed, "Closed: Bo")]
)
def test_an_error_fails_its_step_though_its_class_tells_nothing(
    function: Function, said: str
) -> None:
    with replaced(ship, function):
        process = started(Parcel, Parcel.Input("Bo"))

    assert process.status == "failed"
    assert process.incidents[0].startswith(said)


# Where no function of the application raised


@pytest.mark.parametrize(
    ("texts", "number"),
    [(["no address for %s"], 1), (["no address for %s", "no scale for %s"], 2)],
)
def test_what_the_data_has_is_left_out_of_the_text(
    texts: list[str], number: int
) -> None:
    for text in texts:
        for name in NAMES[0], *NAMES[2:]:
            with failing(ship, LookupError(text % name)):
                started(Parcel, Parcel.Input(name))

    assert groups() == number


def test_what_a_command_has_is_left_out() -> None:
    for goods in ("corn", "crude oil"):
        error = LookupError(f"no market takes {goods}")
        with failing(RequestExternalCreation, error):
            place_order(Destination.BOTH, goods, f"F-{goods}")
            run()
            pass_time(days=1)

    assert Incident.objects.open().count() == 2
    assert groups() == 1


def test_what_an_event_has_is_left_out() -> None:
    for key in ("Alpha", "Beta"):
        send_event(ListedOnInternal(key), id=f"lost-{key}", correlation_key=key)
    pass_time(days=2)

    assert Incident.objects.open().count() == 2
    assert groups() == 1
