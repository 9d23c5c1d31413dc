"""Databases filled by `manage.py seed`: what is in them, and how that goes on after it was cut off."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from threading import Barrier

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench.seed import copies, recording, seeding
from bench.seed.recording import record
from bench.seed.scenarios import SCENARIOS
from examples.order_listing.models import Order
from examples.order_listing.promise import disagreements
from examples.support_inquiry.models import Ticket
from orchestrator.definition.codec import digest
from orchestrator.engine.storage.pruning import Pruning
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.retention import ALL_OTHERS
from tests.services.seeds import recorded

# After each of them the invariants are asked of all that was seeded.
pytestmark = pytest.mark.django_db(transaction=True)

KINDS = len(SCENARIOS)


def assert_there_are(number: int) -> None:
    assert seeding.count_copies() == ProcessInstance.objects.count() == number


def said_of(number: int) -> str:
    return f"There are {number} seeded processes.\n"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeding, "BATCH", 20)


def test_the_first_copies_are_one_of_each_kind_with_checksums_of_their_data() -> None:
    seeding.seed(KINDS, recorded())

    statuses = ProcessInstance.objects.values_list("status", flat=True)
    assert set(statuses) == set(Status.values)
    assert Incident.objects.open().count() >= 4
    verdicts = set(InboxEvent.objects.values_list("verdict", flat=True))
    assert verdicts >= {Verdict.PARKED, Verdict.UNROUTED, Verdict.UNEXPECTED}
    assert StepRun.objects.filter(status="ready", owner="").exists()
    for data, checksum in Checkpoint.objects.values_list("data", "checksum"):
        assert digest(data) == checksum


def test_most_have_ended_of_each_definition_in_the_past_and_later_ones_later() -> None:
    seeding.seed(400, recorded())

    live = ProcessInstance.objects.live().count()
    names = ProcessInstance.objects.ended().values_list("name", flat=True)
    assert 0 < live < 50
    assert set(names) == {"order-listing", "support-inquiry", "video-analysis"}
    rows = ProcessInstance.objects.order_by("correlation_key")
    times = list(rows.values_list("started_at", "changed_at"))
    ends = [end for _, end in times]
    assert ends == sorted(ends)
    assert all(start <= end for start, end in times)
    tables = (StepRun.objects, IssuedCommand.objects)
    waking = (table.exclude(wake_at=None) for table in tables)
    due = [rows.earliest("wake_at").wake_at for rows in waking]
    assert min(filter(None, due)) > ends[-1] + copies.LATER / 2


def test_copies_share_nothing_and_their_applications_agree() -> None:
    seeding.seed(3 * KINDS, recorded())

    of_keys = dict(ProcessInstance.objects.values_list("correlation_key", "pk"))
    assert sorted(of_keys) == [copies.key_of(n) for n in range(1, 3 * KINDS + 1)]
    assert disagreements() == []
    orders = dict(Order.objects.values_list("order_id", "process_id"))
    tickets = dict(Ticket.objects.values_list("ticket", "process_id"))
    assert {**orders, **tickets}.items() <= of_keys.items()


def test_a_seeding_that_is_cut_off_goes_on(small_batches: None) -> None:
    def cut(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seeding.seed(50, recorded(), cut)
    assert_there_are(20)

    added: list[int] = []
    seeding.seed(50, recorded(), added.append)

    assert added == [20, 10]
    assert_there_are(50)


def test_what_was_pruned_is_filled_up_under_new_numbers() -> None:
    seeding.seed(3 * KINDS, recorded())
    left = _pruned()
    last = ProcessInstance.objects.latest("correlation_key").correlation_key
    assert last < copies.key_of(3 * KINDS)

    seeding.seed(3 * KINDS, recorded())

    assert_there_are(3 * KINDS)
    newest = copies.key_of(6 * KINDS - left)
    assert ProcessInstance.objects.filter(correlation_key=newest).exists()


def test_one_of_two_that_begin_at_once_fills_the_database(
    small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, begun = Barrier(2, timeout=60), seeding._begun

    def begun_together() -> object:
        found = begun()
        both.wait()
        return found

    def seeds(number: int) -> str:
        try:
            seeding.seed(number, recorded())
        except seeding.SeededBeside:
            return "is told"
        finally:
            connection.close()
        return "fills it"

    monkeypatch.setattr(seeding, "_begun", begun_together)
    recorded()
    with ThreadPoolExecutor(2) as pool:
        ended = sorted(pool.map(seeds, [60, 60]))

    assert ended == ["fills it", "is told"]
    assert_there_are(60)


def test_the_command_says_that_another_one_is_at_it(
    small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beside_another(number: int, copied: object, told: object) -> None:
        seed(number, recorded(), lambda done: seed(number, recorded()))

    seed = seeding.seed
    monkeypatch.setattr(seeding, "seed", beside_another)
    monkeypatch.setattr(recording, "recordings", recorded)

    with pytest.raises(CommandError, match="let it end, then start this one again"):
        _said("--instances=50")
    assert _said("--instances=50") == said_of(50)


def test_the_command_counts_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "recordings", recorded)
    seeding.seed(KINDS, recorded())
    left = _pruned()

    assert _said(f"--instances={left}") == said_of(left)
    assert _said(f"--instances={KINDS}").endswith(said_of(KINDS))
    assert_there_are(KINDS)


def test_the_command_says_what_it_does_and_then_that_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "recordings", recorded)  # it takes half a minute
    assert _said("--instances=40").endswith(said_of(40))
    assert _said("--instances=40") == said_of(40)
    with pytest.raises(CommandError, match="40 seeded processes already, more than 7"):
        _said("--instances=7")


@pytest.mark.parametrize("number", ["", "0", "-5", "many", "1e6", "100000001"])
def test_the_command_refuses_what_is_no_number_of_processes(number: str) -> None:
    said = "is not a number of processes" if number else "how many"
    with pytest.raises(CommandError, match=said):
        _said(*([f"--instances={number}"] if number else []))


def test_scenarios_are_recorded_on_an_empty_database_only() -> None:
    seeding.seed(1, recorded())

    with pytest.raises(ValueError, match="not empty"):
        next(record())
    assert ProcessInstance.objects.count() == 1


def test_a_value_survives_the_form_of_copy() -> None:
    text = 'a\tb\\n"100 %"\n\\N\r'
    written = text
    for char, escaped in copies.ESCAPED:
        written = written.replace(char, escaped)

    assert copies.plain_value(written) == text
    assert copies.plain_value(r"\N") is None
    assert not {"\n", "\t"} & set(written)


def _pruned() -> int:
    """Prune what has ended; return how many are left."""
    Pruning({ALL_OTHERS: timedelta(0)}, "somebody", None, rest=0).run()
    return ProcessInstance.objects.count()


def _said(*words: str) -> str:
    out = StringIO()
    call_command("seed", *words, stdout=out)
    return out.getvalue()
