"""How urgent an inquiry is."""

import pytest

from examples.readers import Speech, Text, Tone
from examples.support_inquiry.findings import MergedContext, Priority
from examples.support_inquiry.triage import merge, prioritize


def tone(mood: float, language: str = "English") -> Tone:
    return Tone(language, mood, "test")


def test_what_all_branches_found_is_put_together() -> None:
    merged = merge(
        "Hello",
        tone(0.5),
        Text(["Error 17", "Motor stopped"], 1.0, "test"),
        Speech("it is urgent", 1.0, "test"),
        tone(-0.4, "German"),
        None,
        None,
        None,
        "letter.pdf is damaged",
    )

    assert merged == MergedContext(
        "Hello\nError 17\nMotor stopped\nit is urgent",
        ["English", "German"],
        -0.4,
        ["letter.pdf is damaged"],
    )


def test_branches_that_were_not_taken_have_found_nothing() -> None:
    merged = merge("Hello", tone(0.5), *[None] * 7)

    assert merged == MergedContext("Hello", ["English"], 0.5, [])


@pytest.mark.parametrize(
    ("text", "mood", "priority"),
    [
        ("Thank you, all is well", 0.6, Priority.LOW),
        ("When do you open?", 0.0, Priority.LOW),
        ("My order is late", 0.0, Priority.NORMAL),
        ("I do not like it", -0.3, Priority.NORMAL),
        ("Invoice 4711 overdue", 0.0, Priority.NORMAL),
        ("This is urgent, the machine is broken", 0.0, Priority.URGENT),
        ("Error, it has stopped", 0.0, Priority.URGENT),
        ("Cancel it. It came late and broken", -0.6, Priority.URGENT),
    ],
)
def test_words_and_mood_make_the_priority(
    text: str, mood: float, priority: Priority
) -> None:
    assert prioritize(MergedContext(text, ["English"], mood)).priority == priority


def test_what_could_not_be_read_needs_a_person() -> None:
    triage = prioritize(
        MergedContext("Hello", ["English"], 0.2, ["scan.png is damaged"])
    )

    assert triage.priority == Priority.NORMAL
    assert triage.reasons == ["scan.png is damaged"]


def test_another_language_needs_a_person() -> None:
    triage = prioritize(MergedContext("Wo ist es?", ["German"], 0.0))

    assert (triage.priority, triage.reasons) == (Priority.NORMAL, ["another language"])
