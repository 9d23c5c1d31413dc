"""A statement of the application fails in a transaction of the engine, which can only be rolled back then."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from orchestrator.definition import (
    Workflow,
    case,
    catch,
    each,
    route,
    secret,
    start,
    step,
)
from orchestrator.engine.operations import skip
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Incident, OperatorAction, StepRun
from orchestrator.testing import pass_time, registered, started
from tests.services.asking import asked

pytestmark = pytest.mark.django_db(transaction=True)

LONG = timedelta(hours=1)
SECRET = "tok-4711"
TAKEN = "taken"
acts: list[Callable[[str], object]] = []
"""What the code of the application does with a secret text."""


def act(text: str) -> None:
    for one in acts:
        one(text)


@dataclass(frozen=True)
class Token:
    token: str = secret()

    @property
    def parts(self) -> list[int]:
        act(self.token)
        return [1]


def fetch() -> Token:
    return Token(SECRET)


def fetch_later() -> Token:
    raise ValueError("not yet")


def is_good(fetched: Token) -> bool:
    act(fetched.token)
    return True


def use() -> None: ...


def use_part(item: int) -> int:
    return item


def count() -> None: ...


def look_into() -> None: ...


once = step(fetch, transactional=True, retries=0)


class Decided(Workflow):
    flow = (
        start(once),
        route(fetch, case(is_good, to=use), otherwise=count),
        catch(fetch, error=Exception, to=look_into),
    )


class Spread(Workflow):
    flow = (start(once), each(fetch, over="parts", do=step(use_part), into=count))


class Skipped(Workflow):
    flow = (
        start(step(fetch_later, retries=0)),
        route(fetch_later, case(is_good, to=use), otherwise=count),
    )


KINDS = (Decided, Spread, Skipped)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*KINDS):
        yield


@pytest.fixture(autouse=True)
def taken() -> Iterator[None]:
    for name in (TAKEN, SECRET):
        Group.objects.create(name=name)
    yield
    acts.clear()


def pass_over(text: str) -> None:
    """Go on after a statement that has failed."""
    with suppress(IntegrityError):
        Group.objects.create(name=TAKEN)


def tell(text: str) -> None:
    raise ValueError(f"a bad token: {text}")


def store(text: str) -> None:
    """Let the database tell the text."""
    Group.objects.create(name=text)


WAYS = {
    "goes on": [pass_over],
    "goes on, and raises": [pass_over, tell],
    "raises": [store],
}


def said() -> str:
    """Return all that is kept of failures and operations."""
    incidents = Incident.objects.values_list("message", "detail")
    visits = StepRun.objects.values_list("error", "text")
    return repr([*incidents, *visits, *OperatorAction.objects.values_list("result")])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("definition", [Decided, Spread])
def test_no_secret_of_a_result_that_is_rolled_back_is_told(
    definition: type[Workflow], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    acts[:] = WAYS[way]
    process = started(definition)
    pass_time(LONG)

    assert process.status == "failed"
    assert SECRET not in said() + caplog.text


@pytest.mark.parametrize("way", WAYS)
def test_nothing_catches_the_failure_of_a_condition(way: str) -> None:
    acts[:] = WAYS[way]
    process = started(Decided)

    assert process.status == "failed"
    assert not StepRun.objects.filter(node="look_into").exists()


@pytest.mark.parametrize("way", WAYS)
def test_an_operators_result_is_refused_without_its_secret(way: str) -> None:
    process = started(Skipped)
    acts[:] = WAYS[way]
    run = StepRun.objects.get(node="fetch_later")
    with pytest.raises(OperationRefused) as refused:
        skip(process.id, run.pk, {"token": SECRET}, request=asked())

    assert "a statement of its condition has failed" in str(refused.value)
    assert SECRET not in said() + str(refused.value)
    assert process.status == "failed"


def handle_inside(text: str) -> None:
    with suppress(IntegrityError), transaction.atomic():
        Group.objects.create(name=TAKEN)


def get_or_create(text: str) -> None:
    Group.objects.get_or_create(name=TAKEN)


def ignore_conflicts(text: str) -> None:
    Group.objects.bulk_create([Group(name=TAKEN)], ignore_conflicts=True)


def try_out(text: str) -> None:
    with transaction.atomic():
        Group.objects.create(name="tried out")
        transaction.set_rollback(True)


def go_back(text: str) -> None:
    point = transaction.savepoint()
    try:
        Group.objects.create(name=TAKEN)
    except IntegrityError:
        transaction.set_rollback(False)
        transaction.savepoint_rollback(point)


@pytest.mark.parametrize(
    "handle", [handle_inside, get_or_create, ignore_conflicts, try_out, go_back]
)
def test_code_that_handles_its_failed_statement_goes_on(
    handle: Callable[[str], object],
) -> None:
    acts[:] = [handle]

    assert started(Decided).status == "completed"
    assert not Incident.objects.exists()


def test_a_rollback_that_the_code_asks_for_has_no_cause_of_another_process() -> None:
    acts[:] = [handle_inside]
    started(Decided)
    acts[:] = [lambda text: transaction.set_rollback(True)]
    started(Decided)

    incident = Incident.objects.get()
    assert incident.message.startswith("TransactionAborted: ")
    assert TAKEN not in incident.detail
