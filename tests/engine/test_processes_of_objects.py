"""From an object of the application to its processes, by the subject that their definitions name."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AbstractUser, Group, User
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps
from uuid6 import uuid7

from examples.order_listing.models import Order
from orchestrator import processes_of
from orchestrator.definition import Workflow, step, wait
from orchestrator.definition.messages import Event
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered, started
from tests.services.crews import knowing
from tests.services.explained import explained

pytestmark = pytest.mark.django_db


def look(key: Any) -> str:
    return str(key)


class Answered(Event):
    key: int


class Welcome(Workflow):
    """Is about a user, by the primary key."""

    @dataclass(frozen=True)
    class Input:
        key: int

    subject, correlation = "auth.User", "key"
    flow = (step(look),)


class Survey(Workflow):
    """The same, and goes on until an answer."""

    Input, subject, correlation = Welcome.Input, "auth.User", "key"
    flow = (wait(Answered),)


class Letter(Workflow):
    """Is about a user, by name."""

    @dataclass(frozen=True)
    class Input:
        key: str

    subject, correlation = "auth.User.username", "key"
    flow = (step(look),)


class Delivery(Workflow):
    """Is about an order, by a UUID."""

    @dataclass(frozen=True)
    class Input:
        key: UUID

    subject, correlation = "order_listing.Order.process_id", "key"
    flow = (step(look),)


class Unrelated(Workflow):
    """Has the same keys, and names no subject."""

    Input, correlation = Welcome.Input, "key"
    flow = (step(look),)


known = knowing(Welcome, Survey, Letter, Delivery, Unrelated)


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create_user("ann")


def of(definition: type[Workflow], key: Any) -> ProcessInstance:
    return started(definition, definition.Input(key)).instance


def test_processes_are_found_by_a_number_a_text_and_a_uuid(ann: User) -> None:
    order = Order.objects.create(order_id="1", process_id=uuid7(), destination="both")
    letter, welcome = of(Letter, "ann"), of(Welcome, ann.pk)
    delivery = of(Delivery, order.process_id)
    of(Welcome, ann.pk + 1)
    of(Unrelated, ann.pk)
    of(Letter, "bob")
    of(Letter, str(ann.pk))

    assert list(processes_of(ann)) == [welcome, letter]
    assert list(processes_of(order)) == [delivery]


def test_the_newest_comes_first_and_live_ones_can_be_told(ann: User) -> None:
    older, survey, newer = (of(one, ann.pk) for one in (Welcome, Survey, Welcome))

    assert list(processes_of(ann)) == [newer, survey, older]
    assert list(processes_of(ann).live()) == [survey]


def test_an_object_that_has_its_key_as_text_is_found_too(ann: User) -> None:
    letter = of(Welcome, ann.pk)

    ann.pk = ann.id = str(ann.pk)

    assert list(processes_of(ann)) == [letter]


def test_one_statement_reads_them_by_the_index_of_keys(ann: User) -> None:
    order = Order.objects.create(order_id="1", process_id=uuid7(), destination="both")
    of(Welcome, ann.pk)
    of(Delivery, order.process_id)

    for thing in (order, ann):  # of one key, and of two
        with CaptureQueriesContext(connection) as asked:
            assert len(processes_of(thing)) == 1
        with explained() as how:
            list(processes_of(thing))
        assert len(asked) == 1
        assert "instances_by_key" in how[0]


@isolate_apps("django.contrib.auth", "django.contrib.contenttypes")
def test_proxies_and_models_that_inherit_have_the_processes_of_their_parent(
    ann: User,
) -> None:
    class Friend(User):
        class Meta:
            app_label = "auth"
            proxy = True

    class Employee(User):
        desk = models.CharField(max_length=10)

        class Meta:
            app_label = "auth"

    welcome = of(Welcome, ann.pk)

    for model in (Friend, Employee):
        names = [one.attname for one in AbstractUser._meta.fields]
        same = model(id=ann.pk, **{name: getattr(ann, name) for name in names})
        same.pk, same._state.adding = ann.pk, False
        assert list(processes_of(same)) == [welcome]


def test_an_object_without_a_value_has_no_processes(ann: User) -> None:
    of(Letter, "ann")

    ann.username = None  # type: ignore[assignment]  # as a field may be that can be null

    assert not processes_of(ann)


def test_a_model_that_no_definition_names_has_no_processes() -> None:
    friends = Group.objects.create(name="friends")

    with CaptureQueriesContext(connection) as asked:
        assert not processes_of(friends)

    assert len(asked) == 0


def test_a_wrong_subject_leaves_the_others(ann: User) -> None:
    class Lost(Workflow):
        Input, subject, correlation = Welcome.Input, "auth.Nobody", "key"
        flow = (step(look),)

    welcome = of(Welcome, ann.pk)

    with registered(Lost):
        assert list(processes_of(ann)) == [welcome]


def test_an_object_that_is_not_stored_is_refused(ann: User) -> None:
    gone = Group.objects.create(name="gone")
    gone.delete()

    for thing in (User(username="ann"), Order(order_id="1"), gone):
        with pytest.raises(ValueError, match="is not stored"):
            processes_of(thing)


def test_something_that_is_no_object_is_refused() -> None:
    nothing: Any = "ann"

    with pytest.raises(TypeError, match="takes an object of a model, not 'ann'"):
        processes_of(nothing)
