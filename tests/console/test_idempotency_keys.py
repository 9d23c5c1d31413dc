"""The key of a press is good for one person and one action, and it is kept where the press came from."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator.engine import operations
from orchestrator.engine.operations import ActionRequest, EventToSend
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance
from tests.conftest import of, person
from tests.services.doing import fresh
from tests.services.forms_of_actions import failed_order

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def order() -> ProcessInstance:
    return failed_order()


def pressed(who: User, order: ProcessInstance, key: str = "", **meta: str) -> int:
    """Press *Escalate*, and return what was answered."""
    said = {"key": key or str(uuid4()), "reason": "it is late", "revision": ""}
    answer = of(who).post(f"/processes/{order.pk}/escalate/", said, **meta)  # type: ignore[arg-type]
    return answer.status_code


@pytest.fixture
def reader(db: None) -> User:
    return person("reader", "view_processinstance")


def test_a_key_does_not_tell_another_person_that_it_was_done(
    order: ProcessInstance, operator: User, reader: User
) -> None:
    key = str(uuid4())
    people = (operator, operator, reader)
    assert [pressed(who, order, key) for who in people] == [302, 302, 409]
    assert OperatorAction.objects.get().actor == operator


def test_a_refusal_of_another_person_is_not_told_as_ones_own(
    order: ProcessInstance, operator: User, reader: User
) -> None:
    key = str(uuid4())
    assert [pressed(who, order, key) for who in (reader, operator)] == [403, 409]
    assert pressed(operator, order) == 302


def test_who_asks_again_is_refused_for_the_same_reason(
    order: ProcessInstance, operator: User, reader: User
) -> None:
    key = str(uuid4())
    assert [pressed(reader, order, key) for _ in range(2)] == [403, 403]

    stale = ActionRequest(operator, uuid4(), "late", order.revision - 1)
    for _ in range(2):
        with pytest.raises(StaleRevision):
            operations.escalate(order.pk, request=stale)
    assert OperatorAction.objects.count() == 2


def test_a_key_is_good_for_one_thing(order: ProcessInstance, operator: User) -> None:
    request = ActionRequest(operator, uuid4(), "on holiday")
    operations.assign(order.pk, operator.username, request=request)
    operations.assign(order.pk, operator.username, request=request)
    with pytest.raises(OperationRefused, match="used for another action"):
        operations.assign(order.pk, "", request=request)

    assert fresh(order).owner == operator
    assert "given" in OperatorAction.objects.get().after


def test_a_row_without_digest_is_good(order: ProcessInstance, operator: User) -> None:
    """As one that an earlier version has written while this one was rolled out."""
    request = ActionRequest(operator, uuid4(), "on holiday")
    done = operations.assign(order.pk, operator.username, request=request)
    del done.after["given"]
    done.save()

    assert operations.assign(order.pk, operator.username, request=request) == done


def test_an_event_that_is_another_is_not_said_to_be_sent(
    order: ProcessInstance, operator: User
) -> None:
    body = {"order_id": order.correlation_key, "external_id": "X-1"}
    event = EventToSend("ExternalOrderCreated", body, "e-1", order.pk)
    request = ActionRequest(operator, uuid4(), "they rang up")
    operations.send(event, request=request)
    operations.send(event, request=request)
    with pytest.raises(OperationRefused, match="used for another action"):
        operations.send(replace(event, id="e-2"), request=request)
    assert InboxEvent.objects.filter(source="console").count() == 1


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("10.0.0.1:443", "10.0.0.1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("::1", "::1"),
        *((given, None) for given in ("10.0.0.1:2:3", "unknown", "")),
    ],
)
def test_where_a_press_comes_from_is_kept_if_that_is_an_address(
    order: ProcessInstance, operator: User, given: str, kept: str | None
) -> None:
    assert pressed(operator, order, REMOTE_ADDR=given) == 302
    assert OperatorAction.objects.get().address == kept
