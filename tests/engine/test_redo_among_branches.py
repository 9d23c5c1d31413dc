"""Steps that are redone, skipped and passed over while branches beside them are cancelled."""

from typing import Any

import pytest

from orchestrator import Permanent
from orchestrator.definition import Workflow, ask, catch, fork, join, step, then
from orchestrator.engine.operations import redo, repair, resume, retry
from orchestrator.models import Checkpoint, ProcessInstance, Status, StepStatus
from tests.apps.compensation import steps as s
from tests.apps.patterns.desk import finished, insist, statuses, visit, visits
from tests.both.test_joins_of_one_change import Told, told
from tests.services.doing import refused
from tests.services.operated import decided, knowing, operated

__all__ = ["told"]

pytestmark = pytest.mark.django_db

broken: set[str] = set()
"""The steps whose next attempts fail."""


class Broken(Permanent):
    """What a step says that does not work."""


class Other(Permanent):
    """What another step says."""


@pytest.fixture(autouse=True)
def whole() -> None:
    broken.clear()


def begin() -> str:
    return "begun"


def first(name: str) -> str:
    if "first" in broken:
        raise ConnectionError("not now")
    if "first for good" in broken:
        raise Broken("it does not work")
    return name


def fails() -> None:
    if "fails" in broken:
        raise Broken("it does not work")


def fails_later(mail: str) -> None:
    raise Broken("it does not work")


def handler() -> None: ...


def fails_otherwise(phone: s.Answer) -> None:
    raise Other("it does not work")


def fails_otherwise_later(mail: s.Answer) -> None:
    raise Other("it does not work")


def reads(first: str) -> str:
    return first


def end() -> None: ...


def last() -> None: ...


phone, mail, fax = (ask(name, s.Answer) for name in ("phone", "mail", "fax"))
LONG = step(first, retries=3, backoff=3600)
HASTY = (
    fork(begin, into=[fails, phone, mail]),
    join(fails, phone, into=last, on_failure="fail_fast"),
)
"""A failure gives a question up."""


class Caught(Workflow):
    """A step that is done is cancelled with what is caught beside it."""

    Input = s.Traveller
    flow = (
        fork(begin, into=[LONG, mail, phone]),
        then(mail, fails_later),
        catch(first, fails_later, error=Broken, to=handler),
        join(first, phone, into=end),
    )


class Read(Workflow):
    """Beside what is cancelled the result of a cancelled step is read."""

    Input = s.Traveller
    flow = (
        fork(LONG, into=[phone, mail, fax]),
        then(mail, fails_later),
        catch(first, fails_later, error=Broken, to=handler),
        then(fax, reads),
        join(reads, phone, into=end),
    )


class Either(Workflow):
    """A step that is done is cancelled with the rest of its branch."""

    Input = s.Traveller
    flow = (
        fork(begin, into=[LONG, phone]),
        then(first, mail),
        join(mail, phone, into=end, wait_for="any", rest="cancel"),
    )


class Asked(Workflow):
    """A step, and then a question."""

    Input = s.Traveller
    flow = (then(first, phone), then(phone, end))


class Skipped(Workflow):
    """What one failure has cancelled, another way out cancels for good."""

    Input = s.Traveller
    flow = (*HASTY, join(last, mail, into=end, wait_for="any", rest="cancel"))


class Orphaned(Workflow):
    """A redo that is given up by one failure, and then cancelled with the rest of a branch."""

    Input = s.Traveller
    flow = (
        fork(begin, into=[LONG, mail, fax]),
        then(mail, fails_later),
        then(first, phone, fails_otherwise),
        catch(fails_otherwise, error=Other, to=reads),
        join(fails_otherwise, fails_later, into=last, on_failure="fail_fast"),
        join(last, fax, into=end, wait_for="any", rest="cancel"),
    )


class CaughtFast(Workflow):
    """The failed step is cancelled, and nobody can retry it any more; what it had given up is not."""

    Input = s.Traveller
    flow = (
        *HASTY,
        then(mail, fails_otherwise_later),
        catch(fails, fails_otherwise_later, error=Other, to=handler),
    )


class GivenUpCaught(Workflow):
    """What one failure has given up is cancelled, and then the failure is retried."""

    Input = s.Traveller
    flow = (
        *HASTY,
        then(mail, fails_later),
        catch(phone, fails_later, error=Broken, to=handler),
    )


class PassedOver(Workflow):
    """A join that is made by the change that gives it up."""

    Input = s.Traveller
    flow = (
        fork(begin, into=[fails, phone]),
        catch(fails, phone, error=Broken, to=handler),
        join(fails, phone, into=end),
    )


flows = knowing(
    *(Asked, Caught, CaughtFast, Either, GivenUpCaught),
    *(Orphaned, PassedOver, Read, Skipped),
)


def rounds(process: ProcessInstance, node: str) -> list[tuple[int, str]]:
    return [(run.round, run.status) for run in visits(process, node)]


def test_a_redo_that_is_cancelled_with_its_branch_arrives_nowhere() -> None:
    process = finished(Caught)
    broken.add("first")
    operated(redo, process, "first")
    assert rounds(process, "first") == [(1, "done"), (2, "retrying")]

    decided(process, "mail")
    assert rounds(process, "first") == [(1, "done"), (2, "cancelled")]
    assert statuses(process)["end"] == StepStatus.WAITING
    assert decided(process, "phone").status == Status.COMPLETED


def test_a_redo_that_waits_is_cancelled_with_the_rest_of_a_branch() -> None:
    process = finished(Either)
    broken.add("first")
    operated(redo, process, "first")

    assert decided(process, "phone").status == Status.COMPLETED
    assert rounds(process, "first") == [(1, "done"), (2, "cancelled")]
    assert rounds(process, "mail") == [(1, "cancelled")]


def test_who_waits_for_a_redo_that_is_cancelled_has_it_done_anew() -> None:
    process = finished(Read)
    process.step_runs.filter(node="first").update(result="torn")
    broken.add("first")
    decided(process, "fax")
    assert visit(process, "reads").blocked_on == "first"
    broken.clear()

    decided(process, "mail")

    assert rounds(process, "first") == [(1, "done"), (2, "cancelled"), (3, "done")]
    assert visit(process, "reads").result == "Ito"
    assert decided(process, "phone").status == Status.COMPLETED


def test_a_step_is_redone_again_after_its_redo_was_given_up() -> None:
    process = finished(Asked)
    checkpoint = Checkpoint.objects.filter(instance=process).latest("revision")
    operated(redo, process, "first")
    operated(resume, process, checkpoint.revision)
    operated(redo, process, "first")

    assert rounds(process, "first") == [(1, "done"), (2, "superseded"), (3, "done")]
    assert decided(process, "phone").status == Status.COMPLETED


@pytest.mark.parametrize("first", ["skip", "retry"])
def test_what_one_step_brings_back_another_can_cancel(first: str) -> None:
    broken.add("fails")
    process = finished(Skipped)
    skips: list[dict[str, Any]] = [
        {"edit": "skip", "target": str(visit(process, node).pk), "value": value}
        for node, value in (("fails", None), ("mail", "yes"))
    ]
    if first == "retry":
        skips[0] = {"edit": "retry"}

    assert operated(repair, process, skips).status == Status.COMPLETED
    assert rounds(process, "phone") == [(1, "cancelled")]


def test_what_was_given_up_is_cancelled_for_good_with_its_branch() -> None:
    broken.add("fails")
    process = finished(Skipped)
    assert visit(process, "phone").blocked_on == "fails"

    assert decided(process, "mail").status == Status.COMPLETED
    assert visit(process, "phone").blocked_on == ""


def test_a_redo_that_was_given_up_and_is_cancelled_holds_nobody_up() -> None:
    process = finished(Orphaned)
    process.step_runs.filter(node="first").update(result="torn")
    broken.add("first")
    decided(process, "phone")
    assert visit(process, "reads").blocked_on == "first"
    decided(process, "mail")
    assert rounds(process, "first") == [(1, "done"), (2, "cancelled")]
    decided(process, "fax")
    broken.clear()

    assert insist(process).status == Status.COMPLETED


def test_what_a_redo_that_failed_gave_up_is_cancelled_with_it() -> None:
    process = finished(Orphaned)
    broken.add("first for good")
    operated(redo, process, "first")

    assert decided(process, "fax").status == Status.COMPLETED


def test_what_a_failure_gave_up_goes_on_when_the_failed_step_is_cancelled() -> None:
    broken.add("fails")
    process = finished(CaughtFast)
    assert visit(process, "phone").status == StepStatus.CANCELLED

    decided(process, "mail")

    assert visit(process, "fails").status == StepStatus.CANCELLED
    assert decided(process, "phone").status == Status.COMPLETED


def test_a_retry_brings_nothing_back_that_was_cancelled_meanwhile() -> None:
    broken.add("fails")
    process = finished(GivenUpCaught)
    decided(process, "mail")
    broken.clear()

    assert operated(retry, process).status == Status.COMPLETED
    assert rounds(process, "phone") == [(1, "cancelled")]


def test_one_visit_is_not_edited_twice_however_its_number_is_written() -> None:
    process = finished(Asked)
    key = str(visit(process, "first").pk)
    edits = [{"edit": "result", "target": to, "value": "x"} for to in (key, f"0{key}")]

    refused("two edits of the same", repair, process, edits)


def test_of_a_join_made_and_given_up_at_once_the_latter_is_told(told: Told) -> None:
    broken.add("fails")
    process = finished(PassedOver)

    assert statuses(process)["end"] == StepStatus.NOT_TAKEN
    assert [how for node, how in told if node == "end"] == [StepStatus.NOT_TAKEN]
