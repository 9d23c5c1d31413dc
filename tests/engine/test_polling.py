"""Steps that poll: called again and again, uncharged, until they are done or their time is over."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import Permanent, Poll, Retry, start_process
from orchestrator.definition import (
    Failure,
    StepContext,
    Workflow,
    catch,
    each,
    join,
    start,
    step,
    then,
    undo,
)
from orchestrator.engine.operations import pause, unpause
from orchestrator.exceptions import InvalidDefinition, TimedOut
from orchestrator.models import Incident, Lost, StepRun
from orchestrator.testing import (
    Process,
    failing,
    pass_time,
    registered,
    replaced,
    started,
)
from tests.engine.test_failure_attempts import lose
from tests.services.asking import asked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass
class Outside:
    """Another system, which some functions ask."""

    calls: Counter[str] = field(default_factory=Counter)
    ready: int = 4
    """The number of the call in which it is ready."""
    errors: dict[int, Exception] = field(default_factory=dict)
    """What a call raises, by its number."""

    def ask(self, name: str = "fetch") -> int:
        self.calls[name] += 1
        number = self.calls[name]
        if number in self.errors:
            raise self.errors[number]
        if number < self.ready:
            raise Poll(MINUTE, within=HOUR, message=f"{number} of {self.ready}")
        return number


outside = Outside()


def fetch() -> int:
    return outside.ask()


def fetch_returning() -> int | Poll:
    outside.calls["fetch"] += 1
    if outside.calls["fetch"] < outside.ready:
        return Poll(MINUTE, HOUR)
    return outside.calls["fetch"]


async def fetch_abroad() -> int:
    return outside.ask()


def fetch_reporting(context: StepContext) -> int:
    context.progress(1, 2, "asks")
    return outside.ask()


def hand_over(fetch: int) -> str:
    return f"{fetch} calls"


def tell(failure: Failure) -> str:
    return f"{failure.type} {failure.attempts}: {failure.message}"


def names() -> list[str]:
    return ["a", "b"]


def fetch_one(item: str) -> int:
    return outside.ask(item)


def add(fetch_one: list[int]) -> int:
    return sum(fetch_one)


def fetch_some(item: str) -> int:
    if item == "a":
        return outside.ask()
    raise ValueError("no")


def three_names() -> list[str]:
    return ["a", "b", "c"]


def add_some(fetch_some: list[int]) -> int:
    return sum(fetch_some)


def check() -> int:
    return 1


def both(fetch: int, check: int) -> int:
    return fetch + check


def fall(fetch: int) -> None:
    raise ValueError("no")


def take_back(fetch: int) -> None:
    outside.ask("take back")


once = step(fetch, retries=0)


class Fetching(Workflow):
    """A step without retries, and one after it."""

    flow = (then(once, hand_over),)


class Returning(Workflow):
    flow = (then(step(fetch_returning, "fetch", retries=0), hand_over),)


class Abroad(Workflow):
    flow = (then(step(fetch_abroad, "fetch", retries=0), hand_over),)


class Reporting(Workflow):
    flow = (then(step(fetch_reporting, "fetch", retries=0), hand_over),)


class Together(Workflow):
    flow = (then(step(fetch, retries=0, transactional=True), hand_over),)


class Retrying(Workflow):
    """A step with one retry."""

    flow = (then(step(fetch, retries=1, backoff=0.001), hand_over),)


class Caught(Workflow):
    """Another step follows when the time is over."""

    flow = (once, catch(once, error=TimedOut, to=tell))


class Optional(Workflow):
    """The process goes on without it."""

    flow = (step(fetch, optional=True),)


class Elements(Workflow):
    flow = (each(names, over="", do=step(fetch_one, retries=0), into=add),)


class Held(Workflow):
    """A map that begins no further element after two failures."""

    some = step(fetch_some, retries=0)
    flow = (each(three_names, over="", do=some, into=add_some, tolerate=1),)


class Neighbours(Workflow):
    """The failure of one step cancels the other one, until a person retries."""

    checked = step(check, retries=0)
    flow = (
        start(once, checked),
        join(once, checked, into=both, on_failure="fail_fast"),
    )


class Undoing(Workflow):
    """What undoes its first step polls."""

    flow = (then(once, step(fall, retries=0)), undo(fetch, by=step(take_back)))


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    some = (Fetching, Returning, Abroad, Reporting, Together, Retrying, Caught)
    with registered(*some, Optional, Elements, Undoing, Held, Neighbours):
        yield


@pytest.fixture(autouse=True)
def _ready_again() -> None:
    vars(outside).update(vars(Outside()))


def row(process: Process, node: str = "fetch") -> StepRun:
    return StepRun.objects.get(instance=process.id, node=node)


ENDS: list[tuple[type[Workflow], Any, dict[str, int]]] = [
    (Fetching, "4 calls", {"fetch": 4}),
    (Returning, "4 calls", {"fetch": 4}),
    (Abroad, "4 calls", {"fetch": 4}),
    (Reporting, "4 calls", {"fetch": 4}),
    (Together, "4 calls", {"fetch": 4}),
    (Elements, 8, {"a": 4, "b": 4}),
]


def test_a_step_that_polls_is_called_again_uncharged_until_it_is_done() -> None:
    found = []
    for definition, _, _ in ENDS:
        vars(outside).update(vars(Outside()))
        process = started(definition)
        pass_time(minutes=5)
        found.append((definition, process.result, dict(outside.calls)))

    assert found == ENDS
    assert set(StepRun.objects.values_list("attempt", flat=True)) <= {0, 1}
    assert not Incident.objects.exists()


def test_between_two_calls_it_is_ready_for_the_next_one_and_says_why() -> None:
    process = started(Fetching)

    run = row(process)
    assert (process.status, run.status, run.attempt) == ("running", "ready", 0)
    assert (run.error, run.owner) == ("", "")
    assert run.progress
    assert run.progress["message"] == "1 of 4"
    pass_time(seconds=59)
    assert outside.calls == {"fetch": 1}
    pass_time(seconds=2)
    assert outside.calls == {"fetch": 2}


def test_a_poll_leaves_no_checkpoint() -> None:
    process = started(Fetching)
    before = process.instance.checkpoints.count()
    pass_time(minutes=2)

    assert (outside.calls["fetch"], process.instance.checkpoints.count()) == (3, before)


OVER = "TimedOut: not done after 3600 seconds: 61 of 500"


def test_when_its_time_is_over_it_fails_and_people_are_told() -> None:
    outside.ready = 500
    process = started(Fetching)
    pass_time(hours=2)

    assert (process.status, process.incidents) == ("failed", [OVER])
    assert outside.calls == {"fetch": 61}


def test_a_person_who_retries_it_begins_its_time_anew() -> None:
    outside.ready = 500
    process = started(Fetching)
    pass_time(hours=2)
    outside.ready = 64
    process.retry()
    pass_time(minutes=10)

    assert process.result == "64 calls"


def test_its_time_begins_anew_when_the_neighbour_that_cancelled_it_is_retried() -> None:
    outside.ready = 500
    with failing(check, ValueError("no"), times=1):
        process = started(Neighbours)
        assert (process.status, outside.calls["fetch"]) == ("failed", 1)
        pass_time(days=2)
        outside.ready = 4
        process.retry()
    pass_time(minutes=10)

    assert (process.status, process.incidents) == ("completed", [])


def test_an_element_that_has_polled_goes_on_while_its_map_begins_no_further_one() -> (
    None
):
    process = started(Held)
    assert (process.status, outside.calls["fetch"]) == ("failed", 1)
    pass_time(minutes=10)

    assert outside.calls["fetch"] == 4


def test_the_end_of_its_time_is_caught_or_passed_over() -> None:
    outside.ready = 500
    caught = started(Caught)
    pass_time(hours=2)
    optional = started(Optional)
    pass_time(hours=2)

    assert caught.result_of("tell") == f"TimedOut 1: {OVER.partition(': ')[2]}"
    assert (optional.status, optional.result) == ("completed", None)


def test_its_time_counts_from_its_first_call_and_not_from_its_start() -> None:
    process = Process(start_process(Caught).process_id)
    moved = StepRun.objects.filter(instance=process.id)
    moved.update(started_at=row(process).started_at - 2 * HOUR)  # no worker was there
    pass_time(minutes=9)

    assert process.result_of("fetch") == 4


def test_a_lost_worker_counts_and_the_time_goes_on() -> None:
    outside.ready = 500
    process = started(Retrying)
    pass_time(minutes=30)
    StepRun.objects.filter(finished_at=None).update(wake_at=row(process).started_at)
    lose(Lost.DIED)
    pass_time(minutes=35)

    assert process.incidents == [OVER.replace("61", str(outside.calls["fetch"]))]
    assert row(process).attempt == 2


def test_failed_attempts_between_its_calls_count() -> None:
    outside.errors = {2: ValueError("down"), 3: ValueError("down")}
    process = started(Retrying)
    pass_time(minutes=10)

    assert (process.incidents, outside.calls) == (["ValueError: down"], {"fetch": 3})


def test_a_process_that_was_retrying_is_running_again() -> None:
    outside.errors = {1: ValueError("down")}
    process = started(Retrying)
    pass_time(seconds=1)

    assert (process.status, outside.calls["fetch"]) == ("running", 2)
    pass_time(minutes=10)
    assert process.result == "4 calls"


def test_a_time_without_a_unit_is_an_error_of_the_function() -> None:
    def fetch_wrongly() -> int:
        outside.calls["fetch"] += 1
        raise Poll(60, within=HOUR)  # type: ignore[arg-type]

    with replaced(once, fetch_wrongly):
        process = started(Fetching)
    with replaced(fetch, fetch_wrongly):
        optional = started(Optional).finish()

    said = "TypeError: Poll: after=60 must be a timedelta"
    assert process.incidents == [said]
    assert (optional.status, optional.result) == ("completed", None)


@pytest.mark.parametrize("after", [60, "1m"])
def test_retry_takes_no_time_without_a_unit_either(after: Any) -> None:
    def fetch_wrongly() -> int:
        raise Retry(after)

    with replaced(fetch, fetch_wrongly):
        process = started(Fetching)

    said = f"TypeError: Retry: after={after!r} must be a timedelta"
    assert process.incidents == [said]


def test_its_time_stands_still_while_its_process_is_paused() -> None:
    outside.ready = 3
    process = started(Fetching)
    pause(process.id, request=asked())
    pass_time(hours=3)
    assert outside.calls == {"fetch": 1}
    unpause(process.id, request=asked())
    pass_time(minutes=5)

    assert process.result == "3 calls"


@pytest.mark.parametrize("within", [timedelta.min, -HOUR, timedelta(0)])
def test_a_time_that_is_over_before_the_first_call_is_caught(within: timedelta) -> None:
    def never() -> int:
        outside.calls["fetch"] += 1
        raise Poll(MINUTE, within=within)

    with replaced(fetch, never):
        process = started(Caught)

    told = process.result_of("tell")
    assert (told, outside.calls) == (
        "TimedOut 1: not done after 0 seconds: The step is not done yet.",
        {"fetch": 1},
    )


@pytest.mark.parametrize("after", [timedelta.min, -MINUTE, timedelta(0)])
def test_a_step_that_polls_without_a_pause_waits_for_a_second(after: timedelta) -> None:
    def ask() -> int:
        outside.calls["fetch"] += 1
        if outside.calls["fetch"] > 100:
            raise Permanent("it spins")
        raise Poll(after, within=timedelta(seconds=10))

    with replaced(fetch, ask):
        process = started(Fetching)
        assert outside.calls == {"fetch": 1}
        pass_time(seconds=60)

    assert process.status == "failed"
    assert outside.calls["fetch"] <= 11


def test_what_undoes_a_step_may_poll() -> None:
    outside.ready = 1
    process = started(Undoing)
    outside.ready = 3
    process.cancel()
    pass_time(minutes=5)

    assert (process.status, outside.calls["take back"]) == ("cancelled", 3)


def test_retry_counts_an_attempt_and_poll_is_no_failure_to_be_caught() -> None:
    outside.errors = dict.fromkeys(range(1, 9), Retry(MINUTE))
    process = started(Retrying)
    pass_time(minutes=10)

    assert (process.status, outside.calls) == ("failed", {"fetch": 2})
    with pytest.raises(InvalidDefinition, match="fails with TimedOut"):
        type("No", (Workflow,), {"flow": (once, catch(once, error=Poll, to=tell))})
