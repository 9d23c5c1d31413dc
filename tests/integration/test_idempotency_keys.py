"""The key of a press is good for one person and one action, and it is kept where the press came from."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestrator.models import OperatorAction, ProcessInstance
from tests.conftest import person
from tests.services.forms_of_actions import failed_order

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def order() -> ProcessInstance:
    return failed_order()


def pressed(who: User, order: ProcessInstance, key: str, **meta: str) -> int:
    """Press *Escalate*, and return what was answered."""
    client = Client()
    client.force_login(who)
    said = {"key": key, "reason": "it is late", "revision": ""}
    answer = client.post(f"/processes/{order.pk}/escalate/", said, **meta)  # type: ignore[arg-type]
    return answer.status_code


def test_a_key_does_not_tell_another_person_that_it_was_done(
    order: ProcessInstance, operator: User
) -> None:
    key = str(uuid4())
    assert pressed(operator, order, key) == 302
    assert pressed(operator, order, key) == 302
    assert pressed(person("reader", "view_processinstance"), order, key) == 409
    assert OperatorAction.objects.get().actor == operator


def test_a_refusal_of_another_person_is_not_told_as_ones_own(
    order: ProcessInstance, operator: User
) -> None:
    key = str(uuid4())
    assert pressed(person("reader", "view_processinstance"), order, key) == 403
    assert pressed(operator, order, key) == 409
    assert pressed(operator, order, str(uuid4())) == 302


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("10.0.0.1:443", None),
        ("unknown", None),
        ("", None),
    ],
)
def test_where_a_press_comes_from_is_kept_if_that_is_an_address(
    order: ProcessInstance, operator: User, given: str, kept: str | None
) -> None:
    assert pressed(operator, order, str(uuid4()), REMOTE_ADDR=given) == 302
    assert OperatorAction.objects.get().address == kept
