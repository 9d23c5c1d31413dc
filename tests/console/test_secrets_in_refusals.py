"""What is refused because of the application's code is told without the secrets that this code was asked of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent, start_process
from orchestrator.definition import Workflow, case, each, fork, route, start
from orchestrator.definition.secrets import MASK
from orchestrator.engine.storage import definitions
from orchestrator.models import BulkItem, OperatorAction, StepRun
from orchestrator.testing import registered, run
from tests.apps.kept_secret.processes import (
    DIGEST,
    HUSH,
    PASSWORD,
    Answered,
    Hashed,
    Person,
)
from tests.console.test_secrets import content, told
from tests.services.bulk import a_moment, begun, verdicts, worked_on
from tests.services.client import Client

pytestmark = pytest.mark.django_db

GIVEN = {"person": "E-1", "digest": DIGEST, "answers": [], "salts": []}


def keep(person: str) -> Hashed:
    raise Permanent("not now")


def is_good(kept: Hashed) -> bool:
    raise ValueError(f"cannot judge {kept.digest}")


def good() -> None:
    """Does nothing."""


def bad() -> None:
    """Does nothing."""


class Gate(Workflow):
    """Judges what it keeps."""

    Input = Person
    flow = (route(keep, case(is_good, to=good), otherwise=bad),)


def open_gate(person: str) -> Hashed:
    return Hashed(person, DIGEST, [f"{HUSH}-1", f"{HUSH}-2"])


def keep_answer(item: str) -> Answered:
    raise Permanent("not now")


def are_good(answers: list[Answered]) -> bool:
    raise ValueError(f"cannot judge {answers}")


class GateOfMany(Workflow):
    """Judges all that it keeps together."""

    Input = Person
    flow = (
        each(open_gate, over="answers", do=keep_answer, into=good),
        fork(keep_answer, into=[case(are_good, to=bad)]),
    )


broken: list[str] = []
"""What is wrong with the code, if anything."""


class GateOfInput(Workflow):
    """Is made of its input, as long as its code is not broken."""

    Input = Person

    @staticmethod
    def flow(input: Person) -> list[Any]:
        if broken:
            raise LookupError(f"{input.password} opens no gate")
        return [start(keep)]


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Gate, GateOfMany, GateOfInput):
        yield


@pytest.fixture
def failed(db: None) -> StepRun:
    """A step whose result a person can give; what follows of it cannot be told."""
    pk = start_process(Gate, Person("E-1", "pass-word")).process_id
    run()
    return StepRun.objects.get(instance=pk, node="keep")


def test_the_audit_of_a_refused_skip_has_no_secret(
    failed: StepRun, admin: Client
) -> None:
    form = {"key": uuid4().hex, "reason": "x", "json": json.dumps(GIVEN)}
    place = f"/processes/{failed.instance_id}/steps/{failed.pk}/skip/"

    refused = admin.post(place, form)

    detail = OperatorAction.objects.get().detail
    assert f"cannot judge {MASK}" in detail
    for text in (detail, content(refused), content(admin.get("/audit/"))):
        assert not told(text)


def test_nor_has_that_of_an_element_which_is_judged_with_all_others(
    admin: Client,
) -> None:
    """The code is asked of the results of all elements: those that were given before are secrets too."""
    pk = start_process(GateOfMany, Person("E-1", "pass-word")).process_id
    run()
    first, last = StepRun.objects.filter(instance=pk, kind="item").order_by("item")
    place = f"/processes/{pk}/steps"
    form = {"reason": "x", "json": json.dumps({"answer": f"{HUSH}-answer"})}
    admin.post(f"{place}/{first.pk}/skip/", {**form, "key": uuid4().hex})

    form["json"] = json.dumps({"answer": "another"})
    admin.post(f"{place}/{last.pk}/skip/", {**form, "key": uuid4().hex})

    done, refused = OperatorAction.objects.order_by("pk")
    assert (done.result, refused.result) == ("done", "refused")
    assert refused.detail.count(MASK) == 2
    assert not told(refused.detail)


def test_nor_has_what_became_of_one_of_many(
    failed: StepRun, admin: Client, administrator: User
) -> None:
    about = {"definition": Gate.name, "status": "failed"}
    a_moment()
    operation = worked_on(
        begun(administrator, about, 1, action="skip_failed", given=[GIVEN])
    )

    assert verdicts(operation) == {"refused": 1}
    detail = BulkItem.objects.get().detail
    assert MASK in detail
    for text in (detail, content(admin.get(f"/operations/{operation.pk}/"))):
        assert not told(text)


def test_nor_has_a_staged_repair(failed: StepRun, admin: Client) -> None:
    place = f"/processes/{failed.instance_id}/repair/"
    edit = {"edit": "skip", "target": str(failed.pk), "value": json.dumps(GIVEN)}

    refused = admin.post(f"{place}stage/", edit)

    assert refused.status_code == 400
    assert f"cannot judge {MASK}" in content(refused)
    assert not told(content(refused))


def test_nor_has_the_page_of_a_repair_whose_graph_cannot_be_made_any_more(
    admin: Client,
) -> None:
    pk = start_process(GateOfInput, Person("E-1", PASSWORD)).process_id
    run()
    place = f"/processes/{pk}/repair/"
    assert admin.post(f"{place}stage/", {"edit": "retry"}).status_code == 302
    definitions.forget()
    broken.append("all")
    try:
        page = content(admin.get(place))
        staged = admin.post(f"{place}stage/", {"edit": "redo", "target": "keep"})
    finally:
        broken.clear()

    assert page.count(f"LookupError: {MASK} opens no gate") == 2
    assert staged.status_code == 409
    for text in (page, content(staged)):
        assert not told(text)
