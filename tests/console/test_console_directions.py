"""Characters that change the direction of a text are shown by their codes on pages, and stay exact everywhere else."""

import json

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import reverse

from examples.order_listing.messages import Destination
from monitoring.base.directions import show_directions
from orchestrator.engine.operations import escalate
from orchestrator.models import OperatorAction, ProcessInstance
from tests.console.test_api import Program
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import rows_of

TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
TURNED = f"invoice{TURNING}fdp.exe"
SHOWN = "".join(f"\\u{ord(one):04x}" for one in TURNING)


@pytest.fixture
def order(operator: User) -> ProcessInstance:
    """An order whose description changes its direction, and so does the reason of who escalated it."""
    process = placed(Destination.EXTERNAL, description=TURNED, key="A-1")
    escalate(process.pk, request=asked(reason=TURNED))
    return process


@pytest.mark.django_db
@cases("address", "/audit/", "/processes/{}/", "/processes/{}/?at=1", "/")
def test_no_page_of_the_console_changes_its_direction(
    address: str, order: ProcessInstance, operating: Client
) -> None:
    text = operating.read(address.format(order.pk))

    assert not set(TURNING) & set(text)
    assert (SHOWN in text) == (address != "/")


@pytest.mark.django_db
def test_no_live_part_of_a_page_changes_its_direction(
    order: ProcessInstance, operating: Client
) -> None:
    answer = operating.get(
        f"/processes/{order.pk}/?since=0", headers={"HX-Request": "true"}
    )

    text = answer.content.decode()
    assert SHOWN in text
    assert not set(TURNING) & set(text)


@pytest.mark.django_db
@cases("model", "operatoraction", "processinstance")
def test_no_page_of_the_administration_changes_its_direction(
    model: str, order: ProcessInstance, admin: Client
) -> None:
    action = OperatorAction.objects.get()
    row = action if model == "operatoraction" else order
    for name, keys in (("changelist", []), ("change", [row.pk])):
        address = reverse(f"admin:orchestrator_{model}_{name}", args=keys)
        text = admin.get(address).content.decode()
        assert not set(TURNING) & set(text)
    assert SHOWN in text


@pytest.mark.django_db
def test_files_have_the_text_as_it_is(
    order: ProcessInstance, operating: Client
) -> None:
    [row] = rows_of(operating, "/audit/export.jsonl")
    assert row["reason"] == TURNED


@pytest.mark.django_db
def test_the_api_has_the_text_as_it_is(order: ProcessInstance, operator: User) -> None:
    answer = Program(operator).told(f"/api/processes/{order.pk}/")
    assert TURNED in json.dumps(answer, ensure_ascii=False)


def test_a_text_field_keeps_its_value_exactly() -> None:
    page = f'<input value="{TURNED}"><textarea>{TURNED}</textarea><b>{TURNED}</b>'

    text = show_directions(HttpResponse(page)).content.decode()

    codes = "".join(f"&#{ord(one)};" for one in TURNING)
    exact = TURNED.replace(TURNING, codes)
    shown = TURNED.replace(TURNING, SHOWN)
    field = f'<input value="{exact}"><textarea>{exact}</textarea>'
    assert text == f"{field}<b>{shown}</b>"


@cases("kind", "application/json", "text/csv", "text/plain", "text/vnd.graphviz")
def test_what_is_no_page_is_left_alone(kind: str) -> None:
    assert show_directions(HttpResponse(TURNED, kind)).content == TURNED.encode()


def test_other_characters_of_all_languages_stay() -> None:
    text = "".join(map(chr, {*range(0x80, 0xD800)} - set(map(ord, TURNING))))
    assert show_directions(HttpResponse(text)).content == text.encode()
