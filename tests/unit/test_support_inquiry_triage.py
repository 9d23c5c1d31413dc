"""How urgent an inquiry is."""

from examples.readers import Speech, Text, Tone
from examples.support_inquiry.findings import MergedContext, Priority
from examples.support_inquiry.triage import merge, prioritize
from tests.services.cases import cases


def tone(mood: float, language: str = "English") -> Tone:
    return Tone(language, mood, "test")


def test_what_all_branches_found_is_put_together() -> None:
    seen = Text(["Error 17", "Motor stopped"], 1.0, "test")
    heard = Speech("it is urgent", 1.0, "test"), tone(-0.4, "German")
    doubts = None, None, None, "letter.pdf is damaged"
    merged = merge("Hello", tone(0.5), seen, *heard, *doubts)

    text = "Hello\nError 17\nMotor stopped\nit is urgent"
    doubt = "letter.pdf is damaged"
    assert merged == MergedContext(text, ["English", "German"], -0.4, [doubt])


def test_branches_that_were_not_taken_have_found_nothing() -> None:
    merged = merge("Hello", tone(0.5), *[None] * 7)

    assert merged == MergedContext("Hello", ["English"], 0.5, [])


@cases(
    "text, mood, priority",
    ("Thank you, all is well", 0.6, Priority.LOW),
    ("When do you open?", 0.0, Priority.LOW),
    ("My order is late", 0.0, Priority.NORMAL),
    ("I do not like it", -0.3, Priority.NORMAL),
    ("Invoice 4711 overdue", 0.0, Priority.NORMAL),
    ("This is urgent, the machine is broken", 0.0, Priority.URGENT),
    ("Error, it has stopped", 0.0, Priority.URGENT),
    ("Cancel it. It came late and broken", -0.6, Priority.URGENT),
)
def test_words_make_a_priority(text: str, mood: float, priority: Priority) -> None:
    assert prioritize(MergedContext(text, ["English"], mood)).priority == priority


@cases(
    "found, reason",
    (MergedContext("Hello", ["English"], 0.2, ["scan is damaged"]), "scan is damaged"),
    (MergedContext("Wo ist es?", ["German"], 0.0), "another language"),
)
def test_what_is_unclear_needs_a_person(found: MergedContext, reason: str) -> None:
    triage = prioritize(found)

    assert (triage.priority, triage.reasons) == (Priority.NORMAL, [reason])
