"""Steps that sleep, wait for certain events or take arguments: drawing, names and differences."""

from datetime import timedelta

from orchestrator.definition import catch, sleep, step, stored, then, wait
from tests.unit.workflows import Approved, Backwards, define, refusal, steps, work

a, b = steps("a b")
DAY = timedelta(days=1)


def greet(words: str, times: int = 1) -> str:
    return words * times


def test_a_sleep_is_named_after_its_time() -> None:
    [node] = define(sleep(DAY)).graph().nodes

    assert (node.id, node.kind, node.detail) == ("sleep_1_day", "sleep", "1 day")


def test_two_sleeps_need_names() -> None:
    refused = refusal(then(sleep(DAY), sleep(DAY)))
    assert "two steps are called sleep_1_day" in refused.reason
    assert define(then(sleep(DAY), sleep(DAY, "again")))


def test_another_time_is_another_graph() -> None:
    one, other = (define(sleep(time, "nap")).graph() for time in (DAY, 2 * DAY))

    assert one.fingerprint() != other.fingerprint()


def test_parts_of_a_second_tell_two_sleeps_apart() -> None:
    one, other = sleep(timedelta(seconds=1.2)), sleep(timedelta(seconds=1.7))
    assert (one.name, other.name) == ("sleep_1.2_seconds", "sleep_1.7_seconds")

    named = (sleep(timedelta(seconds=time), "nap") for time in (1.2, 1.7))
    first, second = (define(nap).graph() for nap in named)
    assert first.fingerprint() != second.fingerprint()


def test_guards_and_arguments_are_drawn_and_belong_to_the_fingerprint() -> None:
    waits = [define(wait(Approved)), define(wait(Approved, by=["Ada", "Bob"]))]
    said = [workflow.graph().nodes[0].detail for workflow in waits]
    assert said == ["for Approved", "for Approved [by = Ada, Bob]"]

    given = step(greet, "hello", args={"words": "hi", "times": a})
    taken = step(greet, "hello", args={"words": stored("ticket")})
    ways = given, taken, step(work, "c")
    told = [define(then(a, one)).graph().nodes[1].detail for one in ways]
    assert told == ["words = 'hi', times = that of a", "words = stored ticket", ""]


def test_several_errors_are_one_edge() -> None:
    workflow = define(a, catch(a, error=(KeyError, ConnectionError), to=b))

    [edge] = workflow.graph().edges
    assert edge.event == "KeyError or ConnectionError"
    assert str(catch(a, error=(KeyError,), to=b)) == "catch(a, error=(KeyError), to=b)"


def test_an_error_that_is_caught_before_is_not_caught_again() -> None:
    refused = refusal(
        a,
        catch(a, error=(KeyError, OSError), to=b),
        catch(a, error=(ValueError, ConnectionError), to=step(work, "c")),
    )

    assert "ConnectionError is caught by a row before it" in refused.reason


def count(numbers: frozenset[int]) -> int:
    return len(numbers)


def test_a_set_is_drawn_alike_in_every_process() -> None:
    names = ["Ada", "Bob", "Cid"]
    waits = define(wait(Approved, by=Backwards(names))).graph()
    assert waits.nodes[0].detail == "for Approved [by = Ada, Bob, Cid]"

    numbers = step(count, "n", args={"numbers": frozenset([8, 0])})
    assert define(numbers).graph().nodes[0].detail == "numbers = [0, 8]"
