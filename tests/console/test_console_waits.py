"""S8, the page of waits: everything that waits, for what, since when and until when, the least time left first."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from monitoring.lists.waits import filters as narrowing
from monitoring.lists.waits import page as paging
from monitoring.lists.waits.filters import WaitFilters
from monitoring.lists.waits.kinds import KINDS, all_waits, wait_kind, waits_of_processes
from monitoring.lists.waits.page import WaitPage, refresh_waits, wait_page
from monitoring.lists.waits.wait import Wait
from orchestrator.models import Checkpoint, ProcessInstance, StepRun
from orchestrator.testing import pass_time, started
from tests.apps.every_construct.desk import inquiry as asking
from tests.apps.patterns import ignoring
from tests.apps.patterns.desk import finished
from tests.apps.pausing import processes as pausing
from tests.apps.process_managers.desk import place, underway
from tests.apps.process_managers.fixtures import known
from tests.apps.process_managers.messages import Courier
from tests.services.cases import cases
from tests.services.client import Read
from tests.services.explained import explained
from tests.services.reading import all_rows, between, plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk", "parcels")]

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HEADERS = {"HX-Request": "true"}


@pytest.fixture(scope="module", autouse=True)
def more() -> Iterator[None]:
    """Let the running code have workflows with parts of their own."""
    yield from known(*pausing.WORKFLOWS, ignoring.Keeping)


@pytest.fixture(autouse=True)
def invariants() -> None:
    """Ask for none: times are changed here that the engine keeps."""


def wakes(
    process: ProcessInstance, minutes: float | None = None, **values: object
) -> None:
    """Have what is open of a process wake in so many minutes, or at no time."""
    at = None if minutes is None else timezone.now() + minutes * MINUTE
    process.step_runs.filter(finished_at=None).update(wake_at=at, **values)


def keys(page: WaitPage) -> list[str]:
    return [wait.instance.correlation_key for wait in page.rows]


def first() -> Wait:
    """The first wait that is listed."""
    return wait_page(WaitFilters()).rows[0]


def shown(page: str) -> list[str]:
    """What the rows of the page say, each on one line."""
    body = between(page, '<tbody id="rows">', "</tbody>")
    rows = re.findall(r"<tr .*?</tr>", body, re.DOTALL)
    return [plain(unescape(row).replace("<", " <")) for row in rows]


# For what, since when, until when


def test_s8_1_a_process_manager_says_its_events_and_its_deadlines(read: Read) -> None:
    parcel = place(courier=Courier.PARTNER)
    began = parcel.step_runs.get(finished_at=None).started_at

    wait = first()

    assert (wait.name, wait.label) == ("event", "Packing")
    [awaited] = wait.awaited
    assert (awaited.name, awaited.leads) == ("ParcelPacked", "On the way")
    times = [(one.at, one.escalates) for one in wait.timeouts]
    assert times == [(began + number * HOUR, number > 1) for number in (1, 2, 3)]
    reminding = wait.timeouts[0].edge
    assert reminding
    assert reminding.commands == ("RemindPacker",)
    [row] = shown(read("/waits/"))
    for part in ("an event", "Packing", "P-1", "Parcel P-1", "then escalated"):
        assert part in row

    pass_time(HOUR + MINUTE)
    wait, now = first(), timezone.now()
    left = [one.at and round((one.at - now) / HOUR) for one in wait.timeouts]
    assert left == [1, 2]
    assert wait.passed_at is not None


def test_s8_1_each_kind_of_wait_is_said(read: Read) -> None:
    asking()
    finished(pausing.Top, 1)
    place()

    rows = shown(read("/waits/"))

    found = {wait_kind(run): run for run in all_waits()}
    assert found.keys() == {"event", "decision", "subprocess"}
    # Top, its middle, its bottom that asks
    assert len(rows) == all_waits().count() == 5
    text = " | ".join(rows)
    for said in ("a decision", "accept refuse", "a sub-process", "Middle"):
        assert said in text


RETRYING = {"status": "retrying", "kind": "step", "attempt": 2, "error": "no line"}
MAPPING = {"kind": "map", "wake_at": None, "progress": {"done": 3, "total": 9}}
BLOCKED = {"kind": "step", "wake_at": None, "blocked": "redo", "blocked_on": "classify"}


@cases(
    "is_so, said",
    (RETRYING, ("another attempt", "no line", "attempt 2")),
    ({"kind": "sleep"}, ("time to pass",)),
    (MAPPING, ("the elements of a map", "3 of 9")),
    (BLOCKED, ("another step Verdict Classify",)),
)
def test_s8_1_another_attempt_and_the_end_of_a_sleep_have_their_time(
    is_so: dict[str, object], said: tuple[str, ...], read: Read
) -> None:
    rows = asking().step_runs.filter(finished_at=None).exclude(kind="join")
    waits = {"status": "waiting", "wake_at": timezone.now() + MINUTE}
    assert rows.update(**{**waits, **is_so}) == 1

    [row] = shown(read("/waits/"))
    for part in said:
        assert part in row


def test_s8_1_every_process_that_waits_is_listed_and_each_wait_is_of_one_kind() -> None:
    asking()
    finished(pausing.Top, 1)
    finished(pausing.Squares, 3)
    place()
    underway("P-2")

    waiting = ProcessInstance.objects.live().filter(status__in=["waiting", "retrying"])
    listed = set(all_waits().values_list("instance", flat=True))
    assert listed == set(waiting.values_list("pk", flat=True))
    for run in all_waits():
        same = all_waits().filter(pk=run.pk)
        of = [name for name, kind in KINDS.items() if same.filter(kind.rows).exists()]
        assert of == [wait_kind(run)]


def test_s8_1_a_paused_wait_says_what_is_left(read: Read) -> None:
    parcel = place()
    ProcessInstance.objects.update(status="paused", paused_at=timezone.now())
    wakes(parcel, remaining=10 * MINUTE)

    [row] = shown(read("/waits/"))

    assert "10:00 left when it goes on" in row
    assert "Paused" in row


def test_s8_1_a_deadline_nobody_carries_out_is_overdue_in_amber(read: Read) -> None:
    wakes(place(), -5)

    page = read("/waits/")

    assert 'class="deadline is-overdue"' in page
    assert "Overdue since" in page
    assert "05:0" in shown(page)[0]


def test_s8_1_a_deadline_that_was_carried_out_says_since_when(read: Read) -> None:
    place()
    pass_time(3 * HOUR + MINUTE)
    passed = Checkpoint.objects.filter(cause__startswith="deadline").latest("revision")

    wait, [row] = first(), shown(read("/waits/"))

    assert (wait.passed_at, wait.timeouts) == (passed.at, [])
    assert ("Overdue since" in row, "Escalated" in row) == (True, True)


# The order


def test_s8_1_the_least_time_left_comes_first_then_what_waits_longest() -> None:
    parcels = [place(f"P-{number}") for number in range(5)]
    for ago, minutes in enumerate((60, None, -60, None, 1)):
        wakes(parcels[ago], minutes, started_at=timezone.now() - (ago + 1) * HOUR)

    assert keys(wait_page(WaitFilters())) == ["P-2", "P-4", "P-0", "P-3", "P-1"]


@pytest.fixture
def ten(operator: User) -> None:
    """Ten processes that wait, some until the same moment, some without a time."""
    now = timezone.now()
    asking()
    for number in range(9):
        parcel = place(f"P-{number}")
        at = now + (number % 3) * MINUTE if number % 4 else None
        wakes(parcel, started_at=now - (number % 2) * HOUR)
        parcel.step_runs.filter(finished_at=None).update(wake_at=at)
    third = [f"P-{number}" for number in range(0, 9, 3)]
    escalated_by(operator, *third)


def escalated_by(operator: User, *keys: str) -> None:
    """Have these been escalated, and be the operator's."""
    rows = ProcessInstance.objects.filter(correlation_key__in=keys)
    rows.update(escalation_level=1, owner=operator)


@cases("looked_at", 2, 3, 1_000)
@cases(
    "filters",
    WaitFilters(),
    WaitFilters(definition="shipping"),
    WaitFilters(kind="event"),
    WaitFilters(owner="nobody"),
    WaitFilters(due="soon"),
    WaitFilters(escalated="1"),
    WaitFilters(owner="operator", kind="event"),
)
def test_s8_1_pages_follow_each_other_without_gap_or_repeat(
    filters: WaitFilters, looked_at: int, monkeypatch: pytest.MonkeyPatch, ten: None
) -> None:
    now = timezone.now()
    monkeypatch.setattr(paging, "PAGE", 2)
    monkeypatch.setattr(narrowing, "LOOKED_AT", looked_at)
    parts = [rows.filter(filters.unindexed()) for rows in filters.parts(None)]
    there = {run.pk for rows in parts for run in rows}

    seen = [wait.run.pk for wait in all_rows(partial(wait_page, filters))]

    assert len(seen) == len(set(seen))
    assert set(seen) == there
    assert seen
    places = [narrowing.wait_place(StepRun.objects.get(pk=pk)) for pk in seen]
    order = [(at is None, at or now, began, pk) for at, began, pk in places]
    assert order == sorted(order)


@cases("text", "", "x", "1_2", "1_2_x", "1e400_1_1", "9" * 30 + "_1_1")
def test_s8_1_a_place_of_no_meaning_is_the_first_page(text: str, read: Read) -> None:
    """And an empty one says what would be there."""
    assert "A process appears here while it waits" in read("/waits/")
    place()
    assert wait_page(WaitFilters(), text).first


# What it is narrowed to


def test_s8_1_the_address_narrows_and_has_chips(read: Read, operator: User) -> None:
    _, late, soon = (place(f"P-{number}") for number in (1, 2, 3))
    asking("T-1")
    wakes(late, -5)
    wakes(soon, 5)
    escalated_by(operator, "P-2")

    for query, found in (
        ("definition=shipping", "P-2 P-3 P-1"),
        ("kind=decision", "T-1"),
        ("due=overdue", "P-2"),
        ("due=soon", "P-3"),
        ("escalated=1", "P-2"),
        ("owner=me", "P-2"),
        ("owner=operator&definition=shipping", "P-2"),
        ("owner=nobody", "P-3 P-1 T-1"),
        ("owner=nobody&kind=event&definition=shipping", "P-3 P-1"),
        ("escalated=1&kind=decision", ""),
    ):
        rows = shown(read(f"/waits/?{query}"))
        listed = [re.findall(r"\b[PT]-\d\b", row)[0] for row in rows]
        assert listed == found.split(), query
    page = read("/waits/?kind=decision&definition=shipping")
    chips = ('href="?definition=shipping"', "a decision")
    for said in ("Nothing waits.", "Remove a filter to see more.", *chips):
        assert said in page


@cases("query", "kind=nothing", "due=tomorrow")
def test_s8_1_what_is_not_understood_shows_nothing(query: str, read: Read) -> None:
    place()
    page = read(f"/waits/?{query}")
    assert shown(page) == []
    assert 'role="alert"' in page


def test_s8_2_when_a_deadline_is_due_soon_is_a_setting(settings: Settings) -> None:
    wakes(place(), 60)
    assert wait_page(WaitFilters(due="soon")).rows == []

    settings.PROCESSION = {**settings.PROCESSION, "DUE_SOON_SECONDS": 7_200}

    assert len(wait_page(WaitFilters(due="soon")).rows) == 1


def test_s8_1_each_number_is_that_of_the_list_it_opens(read: Read) -> None:
    asking()
    parcels = [place(f"P-{number}") for number in range(6)]
    for parcel, minutes in zip(parcels, (5, 5, -5, -5, -5, 600), strict=True):
        wakes(parcel, minutes)
    ProcessInstance.objects.filter(correlation_key="P-0").update(escalation_level=2)

    link = r'href="([^"]+)"\s+data-tally="(\w+)"[^>]*>.*?num">(\d+)<'
    found = re.findall(link, read("/waits/"), re.DOTALL)

    numbers = {name: int(number) for _, name, number in found}
    assert numbers == {"all": 7, "soon": 2, "overdue": 3, "escalated": 1}
    for address, name, _ in found:
        assert len(shown(read(f"/waits/{unescape(address)}"))) == numbers[name]


def test_s8_1_what_waits_longest_is_one_click_from_the_first_page(read: Read) -> None:
    place("P-1")
    wakes(place("P-2"), started_at=timezone.now() - HOUR)
    wakes(place("P-3"))

    entry = r'<a href="(/waits/)"[^>]*>\s*<span>Waits</span><span class="num">(\d+)<'

    assert re.findall(entry, read("/")) == [("/waits/", "3")]
    assert ["P-2" in row for row in shown(read("/waits/"))] == [False, True, False]


# While it is open


def test_s8_1_an_open_page_keeps_its_rows_and_counts_what_is_new(read: Read) -> None:
    parcels = [place("P-1"), place("P-2")]
    rows = [str(one.step_runs.get(finished_at=None).pk) for one in parcels]
    wakes(parcels[1], 1)
    place("P-3")
    assert keys(wait_page(WaitFilters())) == ["P-2", "P-1", "P-3"]

    same = refresh_waits(WaitFilters(), [*rows, "x", "9" * 25])

    assert (keys(same), same.new) == (["P-1", "P-2"], 1)
    page = f"/waits/?since=&rows={','.join(rows)}"
    part = read(page, **HEADERS)
    assert "1 new" in part
    assert part.index("P-1") < part.index("P-2")

    wakes(parcels[0], status="done", finished_at=timezone.now())
    part = read(page, **HEADERS)
    assert 'class="gone"' in part
    assert "does not wait any more" in part


def test_s8_1_a_page_of_many_takes_few_queries(
    read: Read, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    for number in range(paging.PAGE - 1):
        place(f"P-{number}")
    asking()
    read("/waits/")

    with django_assert_max_num_queries(60):  # type: ignore[attr-defined]
        assert len(shown(read("/waits/"))) == paging.PAGE


def test_the_waits_of_some_are_found_without_going_through_all_that_wait() -> None:
    processes = [underway(f"P-{number}").pk for number in range(3)]
    with explained() as plans:
        found = set(waits_of_processes(processes))

    (plan,) = plans
    assert found == set(all_waits().filter(instance__in=processes))
    assert len(found) == 3
    assert "open_waits" not in plan


def test_a_wait_is_listed_with_its_guard_and_not_with_what_becomes_of_other_events() -> (
    None
):
    started(ignoring.Keeping, ignoring.Offer("7"))

    [awaited] = first().awaited
    assert (awaited.name, awaited.guard) == ("OfferSigned", "form = good")
