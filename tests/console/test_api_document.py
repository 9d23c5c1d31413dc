"""The description of the API is valid, whole, the same for everybody, and can be tried out; the calls keep to it."""

import re
from typing import Any
from uuid import UUID

import hypothesis
import pytest
import requests
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import get_resolver
from openapi_spec_validator import OpenAPIV31SpecValidator
from urllib3 import HTTPResponse

from monitoring.api.descriptions import address_pattern, api_actions
from monitoring.api.urls import urlpatterns
from monitoring.lists.events.event_search import EventFilters
from orchestrator.engine.operations import OPERATIONS
from orchestrator.middleware import POLICY
from tests.apps.every_construct.fixtures import helpdesk
from tests.conftest import of, person
from tests.console.test_api import Program
from tests.console.test_seen_by_definition import let_see
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order, inquiry
from tests.services.sizes import FULL, size

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("world")]


@pytest.fixture(scope="module")
def world(module_db: None, helpdesk: None) -> None:
    """Make an order that has failed, and an inquiry that waits for a decision."""
    failed_order()
    inquiry()


@pytest.fixture
def document(operator: User) -> Any:
    return Program(operator).told("/api/openapi.json")


def test_the_document_is_valid_and_whole(document: dict[str, Any]) -> None:
    assert [str(one) for one in OpenAPIV31SpecValidator(document).iter_errors()] == []
    assert document["openapi"] == "3.1.0"
    paths = document["paths"]
    named = {str(one.name) for one in urlpatterns}
    generic = {name for name in named if name.startswith("api-act")}
    hidden = {"api-nothing", "api-root", "api-document", "api-docs"}
    assert {name_of(path) for path in paths} >= named - generic - hidden
    for operation in api_actions():
        post = paths[address_pattern(operation).partition("?")[0]]["post"]
        assert post["operationId"] == operation.name
        assert operation.permission in post["description"]
        assert post["security"] == [{"Token": []}]
        form = post["requestBody"]["content"]["application/json"]["schema"]
        given = {one.name for one in operation.given}
        assert given | {"key", "revision", "reason"} <= form["properties"].keys()
        assert ("reason" in form["required"]) == operation.requires_reason
    ids = [told["operationId"] for one in paths.values() for told in one.values()]
    assert len(ids) == len(set(ids)) > len(OPERATIONS)
    parameters = str(paths["/api/events/"]["get"]["parameters"])
    assert EventFilters.names()["since"] in parameters


def name_of(path: str) -> str:
    """The name of the route of an address of the document."""
    for place, text in PLACES.items():
        path = path.replace(place, text)
    return str(get_resolver().resolve(path).url_name)


PLACES = {
    **dict.fromkeys(("{process}", "{operation}"), str(UUID(int=0))),
    **dict.fromkeys(("{visit}", "{event}", "{view}", "{token}"), "1"),
    "{cause}": "none",
    "{name}": "stage",
}


def test_who_may_read_the_document_and_its_page_and_all_read_the_same(
    operator: User, viewing: Client, stranger: User
) -> None:
    ann = person("ann", "use_accesstoken")
    let_see(ann, "order-listing", "view_processinstance")
    sessions = [
        (Client(), 401, 302),
        (of(stranger), 403, 403),
        (viewing, 200, 200),
        (of(ann), 200, 200),
    ]
    texts = {Program(operator).get("/api/openapi.json").content}
    for asking, of_document, of_page in sessions:
        read, page = asking.get("/api/openapi.json"), asking.get("/api/docs/")
        assert (read.status_code, page.status_code) == (of_document, of_page)
        assert read.status_code == 403 or read["Cache-Control"] == "no-store"
        if read.status_code == 200:
            texts.add(read.content)
            assert asking.get("/api/processes/").status_code == 401
    good, wrong = Program(ann), Client(headers={"authorization": "Bearer x"})
    for path in ("openapi.json", "docs/"):
        assert good.get(f"/api/{path}").status_code == 200
        wrong.read(f"/api/{path}", status=401)
        assert viewing.post(f"/api/{path}").status_code == 405
    [text] = texts
    for word in (b"order-listing", b"helpdesk", b"OrderCreated", b"operator"):
        assert word not in text


def test_the_page_brings_script_and_style_and_nothing_in_line(viewing: Client) -> None:
    answer = viewing.get("/api/docs/")
    text = answer.content.decode()

    assert answer["Content-Security-Policy"] == POLICY
    assert re.findall(r'<script(?![^>]* src=)| style="|<style', text) == []
    loaded = re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"', text)
    assert [one for one in loaded if "swagger-ui" in one]
    assert [one for one in loaded if not one.startswith("/static/")] == []
    assert 'data-document="/api/openapi.json"' in text


EXAMPLES = size(usual=1, full=15)
"""Calls of each operation, of those that the document allows and of those that it does not."""

SEED = 20261128


@pytest.mark.full_size("15 calls of each kind of each operation", seconds=900)
@pytest.mark.skipif(not FULL, reason="calls made of the document are for --full")
def test_calls_made_of_the_document_are_answered_as_it_says(
    administrator: User, document: dict[str, Any]
) -> None:
    from schemathesis.core.failures import FailureGroup
    from schemathesis.generation import GenerationMode
    from schemathesis.openapi import from_dict
    from schemathesis.specs.openapi import checks

    program = Program(administrator)
    wrong = list[str]()
    held = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    def call(case: Any) -> None:
        asked = requests.Request(**case.as_transport_kwargs("http://testserver"))
        sent = asked.prepare()
        with transaction.atomic():
            answer = program.generic(
                str(sent.method),
                sent.path_url,
                sent.body or b"",
                str(sent.headers.get("Content-Type", "")),
            )
            transaction.set_rollback(True)
        assert answer.status_code != 500
        try:
            case.validate_response(as_requests(answer, sent), checks=held)
        except FailureGroup as failures:
            wrong.extend(
                f"{sent.method} {sent.path_url}: {one}" for one in failures.exceptions
            )

    limits = hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    number = 0
    for result in from_dict(document).get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # the document is valid
        number += 1
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                cases = operation.as_strategy(mode)
                given: Any = hypothesis.given(cases)
                calls: Any = limits(given(call))
                seeded: Any = hypothesis.seed(SEED)(calls)
                seeded()
            except hypothesis.errors.Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # nothing is wrong for it
    assert number > len(api_actions())
    assert wrong == []


def as_requests(answer: Any, sent: requests.PreparedRequest) -> requests.Response:
    """An answer as the library reads it."""
    found = requests.Response()
    found.status_code, found._content = answer.status_code, answer.content
    found.headers.update(answer.headers)
    found.raw = HTTPResponse(headers=dict(answer.headers))
    found.request = sent
    return found
