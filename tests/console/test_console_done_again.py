"""The page of a process says an error once; redo and resume stand behind Retry, with what each would do again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape

import pytest

from monitoring.base.graphs import labels_of
from monitoring.process import repeated_steps
from monitoring.process.repeated_steps import RepeatedSteps
from orchestrator import Permanent, start_process
from orchestrator.definition import Workflow, step, then
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.services.cases import cases
from tests.services.client import Read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("letters")]

SAID = "the envelope 封筒 is <torn>"


@dataclass(frozen=True)
class Letter:
    text: str
    bad: str = "for good"


def write(text: str) -> str:
    return text


def stamp(write: str) -> str:
    return write


def post(stamp: str, bad: str) -> str:
    if bad:
        raise Permanent(SAID) if bad == "for good" else ConnectionError(SAID)
    return stamp


class Letters(Workflow):
    """Writes a letter and posts it."""

    name = "letters"
    Input = Letter
    flow = (then(write, step(stamp, idempotent=False), step(post, idempotent=False)),)


@pytest.fixture(scope="module")
def letters() -> Iterator[None]:
    with registered(Letters):
        yield


def letter(bad: str = "for good") -> ProcessInstance:
    receipt = start_process(Letters, Letter("dear", bad))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def shown(html: str) -> str:
    """What is read without opening anything."""
    html = re.sub(r"<details.*?</details>", " ", html, flags=re.DOTALL)
    html = re.sub(r"<(script|svg|dialog).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@cases("bad", "for good", "for now")
@cases("query", "", "?step=post")
def test_an_error_is_said_once(bad: str, query: str, page_of: Read) -> None:
    instance = letter(bad)
    text = shown(page_of(instance, query))
    assert text.count(SAID) == 1
    assert "the same error" in text
    for _ in range(5):
        pass_time(timedelta(minutes=6))
    assert shown(page_of(instance)).count(SAID) == 1


def test_redo_and_resume_stand_behind_more_and_retry_before_all(page_of: Read) -> None:
    more = re.compile(r'<details class="others".*?</details>', re.DOTALL)
    text = page_of(letter())
    folded, outside = "".join(more.findall(text)), more.sub("", text)
    for name in ("redo", "resume"):
        assert f'data-opens="{name}-dialog"' in folded
        assert f'data-opens="{name}-dialog"' not in outside
    [retry] = re.findall(r'<button[^>]*data-opens="retry-dialog"[^>]*>', outside)
    assert 'class="primary"' in retry
    assert "Done again: Post." in retry
    assert "Not idempotent, so done twice outside: Post." in retry


def test_each_says_what_it_would_do_again(page_of: Read) -> None:
    instance = letter()
    again = RepeatedSteps(instance, labels_of(instance.definition))

    assert again.of_step("write") == "Done again: Write."
    stamped = "Done again: Stamp. Not idempotent, so done twice outside: Stamp."
    assert again.of_step("stamp") == stamped
    revisions = [row.revision for row in instance.checkpoints.order_by("revision")]
    first, last = again.since(revisions[0]), again.since(revisions[-1])
    assert "Post" in last
    assert "Write" not in last
    assert all(name in first for name in ("Write", "Stamp", "Post"))
    assert f'data-warning="{first}"' in unescape(page_of(instance))


def test_no_more_visits_are_looked_at_than_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_steps, "LOOKED_AT", 2)
    monkeypatch.setattr(repeated_steps, "NAMED", 1)
    instance = letter()
    said = RepeatedSteps(instance, labels_of(instance.definition)).since(0)
    assert "…" in said
    assert "and 1 more" in said


def test_at_its_end_nothing_has_to_be_done_again(page_of: Read) -> None:
    instance = letter("")
    assert instance.status == "completed"
    assert RepeatedSteps(instance, labels_of(instance.definition)).of_failed == ""
    assert SAID not in shown(page_of(instance))
