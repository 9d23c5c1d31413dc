"""What is refused because of the application's code is told without the secrets that this code was asked of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent
from orchestrator.definition import Workflow, case, each, fork, route, start
from orchestrator.definition.secrets import MASK
from orchestrator.engine.storage import definitions
from orchestrator.models import BulkItem, OperatorAction, StepRun
from orchestrator.testing import registered, started
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
    return step_of(Gate, node="keep")


def step_of(definition: type[Workflow], **which: Any) -> StepRun:
    """A step of a new process."""
    process = started(definition, Person("E-1", PASSWORD)).instance
    return process.step_runs.filter(**which).order_by("item").first()  # type: ignore[return-value]  # it is there


def skip(client: Client, run: StepRun, given: dict[str, Any]) -> str:
    """Give a step a result, and return what is answered."""
    form = {"key": uuid4().hex, "reason": "x", "json": json.dumps(given)}
    place = f"/processes/{run.instance_id}/steps/{run.pk}/skip/"
    return content(client.post(place, form))


def assert_masked(what: str, *texts: str, times: int = 1) -> None:
    """The first of these texts has the mask, and none has a secret."""
    assert texts[0].count(what) == times, texts[0]
    for text in texts:
        assert not told(text)


def test_the_audit_of_a_refusal_has_no_secret(failed: StepRun, admin: Client) -> None:
    refused = skip(admin, failed, GIVEN)

    detail = OperatorAction.objects.get().detail
    assert_masked(f"cannot judge {MASK}", detail, refused, admin.read("/audit/"))


def test_nor_has_that_of_an_element_judged_with_all_others(admin: Client) -> None:
    """The code is asked of the results of all elements: those that were given before are secrets too."""
    first = step_of(GateOfMany, kind="item")
    last = first.instance.step_runs.filter(kind="item").latest("item")
    skip(admin, first, {"answer": f"{HUSH}-answer"})
    skip(admin, last, {"answer": "another"})

    done, refused = OperatorAction.objects.order_by("pk")
    assert (done.result, refused.result) == ("done", "refused")
    assert_masked(MASK, refused.detail, times=2)


def test_nor_has_what_became_of_one_of_many(
    failed: StepRun, admin: Client, administrator: User
) -> None:
    about = {"definition": Gate.name, "status": "failed"}
    a_moment()
    asked = begun(administrator, about, 1, action="skip_failed", given=[GIVEN])
    operation = worked_on(asked)

    assert verdicts(operation) == {"refused": 1}
    page = admin.read(f"/operations/{operation.pk}/")
    assert_masked(MASK, BulkItem.objects.get().detail, page)


def test_nor_has_a_staged_repair(failed: StepRun, admin: Client) -> None:
    place = f"/processes/{failed.instance_id}/repair/"
    edit = {"edit": "skip", "target": str(failed.pk), "value": json.dumps(GIVEN)}

    refused = admin.post(f"{place}stage/", edit)

    assert refused.status_code == 400
    assert f"cannot judge {MASK}" in content(refused)
    assert not told(content(refused))


def test_nor_has_the_page_of_a_repair_without_its_graph(admin: Client) -> None:
    place = f"/processes/{step_of(GateOfInput).instance_id}/repair/"
    assert admin.post(f"{place}stage/", {"edit": "retry"}).status_code == 302
    definitions.forget_definitions()
    broken.append("all")
    page = admin.read(place)
    staged = admin.post(f"{place}stage/", {"edit": "redo", "target": "keep"})
    broken.clear()

    assert staged.status_code == 409
    mask = f"LookupError: {MASK} opens no gate"
    assert_masked(mask, page, content(staged), times=2)
