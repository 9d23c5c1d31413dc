"""S1, the sentence of the first page: the most urgent thing decides."""

from datetime import UTC, datetime, timedelta
from typing import Any

from monitoring.attention.headline import current_problems
from monitoring.attention.problems import LISTED, Problem
from monitoring.base.charts import area
from monitoring.lists.failures.failures import AlikeFailures
from monitoring.probes.machinery import Machinery, ServedQueue
from monitoring.probes.pulse import Beat
from monitoring.queries.counts import Capped
from orchestrator.models import Incident
from tests.services.cases import cases

NOW = datetime(2026, 11, 23, 9, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def queue(
    name: str = "default", workers: int = 2, due: int = 0, seconds: float = 0
) -> ServedQueue:
    oldest = ago(seconds) if due else None
    return ServedQueue(name, workers, Capped(due, 1000), oldest)


def machinery(
    *queues: ServedQueue, swept: float = 1, set_back: float | None = None
) -> Machinery:
    back = () if set_back is None else (ago(set_back), ago(set_back - 600))
    return Machinery(NOW, 1.0, queues or (queue(),), ago(swept), 0, ago(1), *back)


def needs(**numbers: int) -> dict[str, Problem]:
    return {
        kind: Problem(kind, Capped(numbers.get(kind, 0), 1000), ago(300))
        for kind in LISTED
    }


def failing(number: int = 55) -> AlikeFailures:
    first, last = Incident(opened_at=ago(4000)), Incident(opened_at=ago(5))
    return AlikeFailures(last, first, Capped(number, 5000))


WELL: dict[str, Any] = {
    "machinery": machinery(),
    "needs": needs(),
    "largest": None,
    "redis": Beat(up=True),
    "live": Beat(up=True),
    "notices": None,
}
IN_ORDER: dict[str, dict[str, Any]] = {
    "no_worker": {"machinery": machinery(queue(workers=0))},
    "unserved": {"machinery": machinery(queue(), queue("mail", 0, 14, 540))},
    "no_sweep": {"machinery": machinery(swept=600)},
    "failures": {"largest": failing()},
    "stalled": {"needs": needs(stalled=1)},
    "overdue": {"needs": needs(overdue=2)},
    "escalated": {"needs": needs(escalated=1)},
    "notices": {
        "notices": Problem("notices", Capped(2, 1000), ago(9), names=("duty",))
    },
    "redis": {"redis": Beat(up=False, since=ago(9))},
    "set_back": {"machinery": machinery(set_back=30)},
    "late": {"machinery": machinery(queue(due=9, seconds=600))},
    "events": {"needs": needs(events=1)},
    "live": {"live": Beat(up=False, since=ago(9))},
    "decisions": {"needs": needs(decisions=4)},
}


def found(**facts: Any) -> list[str]:
    return [problem.name for problem in current_problems(**WELL | facts)]


def test_s1_1_nothing_is_wrong_where_all_is_well() -> None:
    assert found() == []
    assert found(needs=needs(retrying=3, paused=1)) == []  # which go on by themselves


@cases("urgency", *list(IN_ORDER))
def test_s1_1_each_thing_that_is_wrong_is_found(urgency: str) -> None:
    assert found(**IN_ORDER[urgency]) == [urgency]


@cases(
    "urgent, less",
    *(("no_worker", "failures"), ("unserved", "failures"), ("no_sweep", "stalled")),
    *(("failures", less) for less in ("overdue", "redis", "late")),
    *(("escalated", "redis"), ("redis", "events"), ("late", "decisions")),
)
def test_s1_1_the_most_urgent_comes_first(urgent: str, less: str) -> None:
    assert found(**IN_ORDER[urgent], **IN_ORDER[less]) == [urgent, less]


def test_s1_1_that_the_clock_went_back_is_said_for_an_hour() -> None:
    [problem] = current_problems(**WELL | {"machinery": machinery(set_back=3500)})
    assert problem.sentence.startswith("The database's clock went back by 10:00 at ")
    assert found(machinery=machinery(set_back=3700)) == []


def test_s1_1_without_any_worker_no_queue_is_blamed() -> None:
    both = machinery(queue(workers=0, due=3, seconds=900), queue("mail", 0, 1, 2))
    assert found(machinery=both) == ["no_worker"]


def test_s1_1_a_silent_redis_is_said_once() -> None:
    silent = Beat(up=False, since=ago(3))
    assert found(redis=silent, live=silent) == ["redis"]
    assert found(redis=Beat(None), live=Beat(None)) == []  # not known yet


def test_s1_1_of_two_queues_the_one_that_waits_longer_comes_first() -> None:
    queues = queue(), queue("mail", 0, 1, 20), queue("films", 0, 1, 900)
    first, second = current_problems(**WELL | {"machinery": machinery(*queues)})
    assert (first.names, second.names) == (("films",), ("mail",))
    assert first.since == ago(900)


def test_s1_1_failures_say_since_when_and_how_many() -> None:
    every = needs(failures=203)
    [problem] = current_problems(**WELL | {"largest": failing(55), "needs": every})
    assert problem.since == ago(300)
    assert str(problem.number) == "203"  # and not those of the largest group alone
    assert problem.address == "/failures/"
    assert problem.kind.urgent
    [waiting] = current_problems(**WELL | {"needs": needs(decisions=1)})
    assert not waiting.kind.urgent


def test_a_chart_stays_in_its_frame() -> None:
    drawn = area([0, 5, 10], 720, 120)
    assert drawn.line == "0,120 360,61 720,2"
    assert drawn.area == "0,120 0,120 360,61 720,2 720,120"
    assert area([0, 0], 96, 22).line == "0,22 96,22"
    assert area([1, 1], 10, 12, most=2).line == "0,7 10,7"
