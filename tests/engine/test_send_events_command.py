"""Events as lines of JSON on standard input."""

import json
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from django.core.management import CommandError, call_command

from orchestrator.engine.storage import receipts
from orchestrator.management.commands import send_events
from orchestrator.models import InboxEvent
from tests.services.cases import cases

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Given = Callable[[str], str]


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a statement take three events."""
    monkeypatch.setattr(send_events, "MANY", 3)
    monkeypatch.setattr(receipts, "MANY", 3)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Return a function that runs the command with a standard input."""

    def run(text: str) -> str:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
        out = StringIO()
        call_command("send_events", "--source", "depot", stdout=out)
        return out.getvalue()

    return run


def line(id: str, **changes: object) -> str:
    event = {"id": id, "type": "ParcelDelivered", "data": {"parcel_id": id}}
    return json.dumps(event | changes) + "\n"


def stored() -> list[str]:
    events = InboxEvent.objects.filter(source="depot").order_by("id")
    return list(events.values_list("event_id", flat=True))


def test_each_line_is_sent_in_its_order(given: Given) -> None:
    said = given("".join(map(line, "gbadcfe")))

    assert stored() == list("gbadcfe")
    assert "sent 7, received before 0" in said


def test_no_more_is_held_than_a_statement_takes(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large lines that is less than of small ones: thousands of them need not fit into memory."""
    monkeypatch.setattr(send_events, "MUCH", 2 * len(line("a")))
    text = "".join(map(line, "abcde"))
    sets = send_events._line_sets(BytesIO(text.encode()), lambda read: None)
    assert [len(lines) for lines in sets] == [2, 2, 1]

    assert "sent 5" in given(text)


def test_the_same_lines_again_change_nothing(given: Given) -> None:
    given("".join(map(line, "abcd")))

    assert "sent 1, received before 4" in given("".join(map(line, "abcde")))
    assert stored() == list("abcde")


@cases(
    "text, found",
    (f"\n{line('a')}\n\r\n{line('b').strip()}", ["a", "b"]),
    (f"\ufeff{line('a')}{line('b')}", ["a", "b"]),  # the mark that some editors write
    ("", []),
)
def test_empty_lines_a_mark_at_the_start_and_a_last_line_without_an_end_are_fine(
    text: str, found: list[str], given: Given
) -> None:
    assert f"sent {len(found)}, " in given(text)
    assert stored() == found


@cases(
    "bad, says",
    ("{", "not JSON"),
    (line("x", type="Unheard"), "Unheard"),
    (line("x", data={}), "parcel_id"),
    (line("x", surplus=1), "surplus"),
    (line("a", data={"parcel_id": "other"}), "sent event id 'a' before"),
    ('{"id": "' + "x" * 300_000, "larger than 256 KiB"),
)
def test_what_is_refused_is_named_by_its_line_and_those_before_it_are_stored(
    given: Given, bad: str, says: str
) -> None:
    before = line("a") + "\n" + line("b") + line("c") + line("d")
    with pytest.raises(CommandError, match="line 6 not sent") as refused:
        given(f"{before}{bad.strip()}\n{line('e')}")

    assert says in str(refused.value)
    assert "the 4 events before it are stored" in str(refused.value)
    assert stored() == list("abcd")
