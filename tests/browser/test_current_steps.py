"""S3.6 in a browser: where a process stands at several steps at once, all of them are highlighted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from orchestrator import send_event, start_process
from orchestrator.definition import Event, Workflow, ask, fork, join, start, wait
from orchestrator.engine import operations
from orchestrator.models import StepRun
from orchestrator.testing import run
from tests.browser.pressing import opened
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


class Choice(StrEnum):
    YES = "yes"
    NO = "no"


class Paid(Event):
    """The fee has come."""

    by: str


def read(title: str) -> str:
    return title


def publish(first: Choice, second: Choice) -> str:
    return f"{first.value}, {second.value}"


first, second = ask("first", Choice), ask("second", Choice)
paid = wait(Paid, "paid")


class Review(Workflow):
    """Two people judge a paper, and its author pays, in any order."""

    name = "paper-review"

    @dataclass(frozen=True)
    class Input:
        title: str

    flow = (
        start(read),
        fork(read, into=[first, second, paid]),
        join(first, second, paid, into=publish),
    )


reviews = knowing(Review)


@pytest.fixture
def paper(transactional_db: None) -> UUID:
    receipt = start_process(Review, Review.Input("On tea"))
    run()
    return UUID(str(receipt.process_id))


def judged(paper: UUID, step: str, judge: User) -> None:
    question = StepRun.objects.get(instance=paper, node=step)
    operations.decide(paper, question.pk, "yes", request=asked(actor=judge))
    run()


def current(page: Page, *steps: str) -> None:
    """Wait until just these steps are highlighted in the picture, and listed as open beside it."""
    expect(page.locator(".picture .step.is-current")).to_have_count(len(steps))
    for step in steps:
        expect(page.locator(f"#n_{step}.is-current")).to_be_visible()


def test_s3_6_all_steps_at_which_it_stands_are_highlighted(
    signed_in: Page, paper: UUID, operator: User
) -> None:
    opened(signed_in, f"/processes/{paper}/")
    current(signed_in, "first", "second", "paid")
    for label in ("First", "Second", "Paid"):
        expect(signed_in.locator("#now")).to_contain_text(label)

    judged(paper, "second", operator)
    current(signed_in, "first", "paid")
    expect(signed_in.locator("#n_second.is-done")).to_be_visible()
    send_event(Paid("ann"), id="fee", process_id=paper)
    run()
    current(signed_in, "first")

    opened(signed_in, f"/processes/{paper}/?at=1")
    signed_in.click("#later")
    current(signed_in, "first", "second", "paid")
    judged(paper, "first", operator)
    current(signed_in, "first", "second", "paid")  # of that moment
