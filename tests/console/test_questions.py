"""What a definition says of a question is what people see, where they answer it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator import start_process
from orchestrator.definition import Workflow, ask, each, then
from orchestrator.definition.workflow.steps import Question
from orchestrator.engine.operations import decide
from orchestrator.exceptions import InvalidDefinition, OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance, StepRun
from orchestrator.testing import run
from tests.apps.questions.processes import (
    Course,
    Lending,
    Loan,
    Sailing,
    Verdict,
    rate,
    tell,
)
from tests.conftest import of
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db


known = knowing(Lending, Sailing)


def loan(of: type[Workflow] = Lending) -> ProcessInstance:
    receipt = start_process(of, Loan(12_000, "Ada", "1234"))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def question(instance: ProcessInstance) -> StepRun:
    return instance.step_runs.get(kind="ask")


def test_members_of_text_choices_are_answers() -> None:
    instance = loan()
    decide(instance.pk, question(instance).pk, "decline", request=asked())
    run()
    told = instance.step_runs.get(node="tell")
    assert (told.status, told.result) == ("done", "Decline it")


@cases(
    "given, said",
    ({"labels": {"gran": "x"}}, "labels= has 'gran', which is none of grant, decline"),
    ({"help": {"no": "x"}}, "help= has 'no', which is none of grant, decline"),
    ({"about": ("size",)}, "size is stored('size'), but no result before verdict and"),
    ({"about": ("tell",)}, "tell is stored('tell'), but no result before verdict and"),
    ({"about": (1,)}, "about= has 1, which is no name"),
    ({"about": ("rate", "rate")}, "about= has a name twice"),
    ({"about": "rate"}, "about= takes several names, as ('rate',)"),
    ({"labels": ["grant"]}, "labels= and help= map choices to words"),
    ({"help": {"grant": None}}, "help= has no words for grant"),
    ({"needs_reason": "no"}, "needs_reason='no' must be True or False"),
)
def test_what_does_not_fit_is_refused(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(InvalidDefinition, match=re.escape(said)):

        class Wrong(Workflow):
            Input = Loan
            verdict = ask("verdict", Verdict, **given)
            flow = (then(rate, verdict, tell),)


def shown(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def buttons(page: str) -> list[dict[str, str]]:
    """The attributes of the buttons that answer a question, each with its label."""
    found = re.findall(r'<button type="button"([^>]*decide-dialog[^>]*)>([^<]*)', page)
    return [
        {"label": label, **dict(re.findall(r'data-([a-z]+)="([^"]*)"', attributes))}
        for attributes, label in found
    ]


@cases("path", "/decisions/", "/waits/", "of the process")
def test_people_see_what_it_is_about_and_answer_in_words(
    path: str, operating: Client, page_of: Read
) -> None:
    instance = loan()
    page = operating.read(path) if path.startswith("/") else page_of(instance)
    grant, decline = buttons(page)
    assert (grant["label"], decline["label"]) == ("Grant it", "Decline it")
    assert (grant["word"], grant["given"]) == ("Grant it", "grant")
    assert grant["help"] == "The money is sent today."
    assert "help" not in decline
    assert (
        unescape(grant["subject"]) == f"Verdict: Grant it · {instance} · Loan for Ada"
    )
    assert grant["about"] == "amount: 12000\nRate: rated 12\npin: ••••••"
    assert grant["reason"] == "optional"
    if path != "/waits/":
        assert "amount: 12000 Rate: rated 12 pin: ••••••" in shown(page)


def test_labels_that_a_definition_gives_and_those_it_does_not(
    operating: Client,
) -> None:
    loan(Sailing)
    north, south = buttons(operating.read("/decisions/"))
    assert (north["label"], south["label"]) == ("To the north", "south")
    assert "reason" not in north


def test_people_who_may_not_see_data_see_no_values(
    viewer: User, operating: Client
) -> None:
    loan()
    data = Permission.objects.get(codename="view_data_processinstance")
    viewer.user_permissions.remove(data)
    page = of(viewer).read("/decisions/")
    assert "12000" not in page
    assert "rated 12" not in page
    assert "12000" in operating.read("/decisions/")


@cases("of_workflow, refused", (Lending, False), (Sailing, True))
def test_a_reason_is_asked_for_where_the_question_needs_one(
    of_workflow: type[Workflow], refused: bool, operating: Client
) -> None:
    instance = loan(of_workflow)
    [first, _] = buttons(operating.read("/decisions/"))
    given = {
        "key": uuid4().hex,
        "choice": first["given"],
        "revision": instance.revision,
    }
    answer = operating.post(unescape(first["url"]), given, follow=True)
    asked_again = "Refused say why, in at most" in shown(answer.content.decode())
    run()
    instance.refresh_from_db()
    assert (asked_again, instance.finished_at is None) == (refused, refused)


def test_answers_of_many_questions_cost_one_statement_more(operating: Client) -> None:
    loan()
    operating.read("/decisions/")  # what is kept from then on is read
    with CaptureQueriesContext(connection) as few:
        operating.read("/decisions/")
    for _ in range(5):
        loan()
    with CaptureQueriesContext(connection) as many:
        operating.read("/decisions/")
    assert len(many) == len(few)


def numbers(amount: int) -> list[int]:
    return [amount]


def square(number: int) -> int:
    return number


def test_a_question_is_not_about_the_elements_of_a_map() -> None:
    said = "square has a result for each of its elements"
    with pytest.raises(InvalidDefinition, match=said):

        class OfElements(Workflow):
            Input = Loan
            course = ask("course", Course, about=("square",))
            flow = (each(numbers, over="", do=square, into=course, item="number"),)


class Kind(StrEnum):
    label = "label"
    price = "price"


def test_a_member_named_label_is_no_label() -> None:
    assert ask("kind", Kind).question == Question({}, {}, (), True)


HOSTILE = 'Ada\nRate: rated 99\u202e "quoted"'


def test_a_value_cannot_look_like_several(operating: Client) -> None:
    receipt = start_process(Sailing, Loan(7, HOSTILE, "1234"))
    run()
    instance = ProcessInstance.objects.get(pk=receipt.process_id)
    north, _ = buttons(operating.read("/decisions/"))
    assert unescape(north["about"]).split("\n") == [
        'customer: Ada Rate: rated 99 "quoted"',
        'Describe: {"of": "東京 \\"hi\\"", "paid": false}',
    ]
    assert instance.finished_at is None


def test_a_forgotten_reason_uses_up_no_key(operating: Client) -> None:
    instance = loan(Sailing)
    run_pk, key = question(instance).pk, uuid4()
    with pytest.raises(OperationRefused, match="say why"):
        decide(instance.pk, run_pk, "north", request=asked(key=key, reason=" "))
    assert not OperatorAction.objects.exists()
    decide(instance.pk, run_pk, "north", request=asked(key=key))
    run()
    instance.refresh_from_db()
    assert instance.status == "completed"
