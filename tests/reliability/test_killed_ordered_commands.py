"""The commands of a row keep their order while workers are killed, also those that fail, are retried or skipped."""

from collections import Counter, defaultdict
from itertools import groupby
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User

from orchestrator import start_process
from orchestrator.engine.operations import ActionRequest, retry, skip_command
from orchestrator.models import Incident, IssuedCommand, ProcessInstance, Status
from tests.apps.ordered_commands import handlers
from tests.apps.ordered_commands.handlers import Call, bring_paper, calls
from tests.apps.ordered_commands.processes import AFTER_COMMIT, BookClosed, Publishing
from tests.reliability.storm import Storm
from tests.services.crews import knowing
from tests.services.sizes import size
from tests.services.workers import Workers

BOOKS = size(8, full=200)
TROUBLES = ("", "passing", "lasting", "lasting")


publishing = knowing(Publishing)


assert handlers.__name__  # importing it has registered them
pytestmark = pytest.mark.usefixtures("no_calls")


def standing() -> Counter[tuple[str, ...]]:
    """Return how often the commands after the commit stand how, in the order written."""
    rows = IssuedCommand.objects.filter(type__in=AFTER_COMMIT)
    found: dict[object, dict[str, str]] = defaultdict(dict)
    for process, name, status in rows.values_list("instance_id", "type", "status"):
        found[process][name] = status
    return Counter(tuple(one[name] for name in AFTER_COMMIT) for one in found.values())


def see_to(book: ProcessInstance, person: User, *, again: bool) -> None:
    """Press Retry of a book that could not be printed, or Skip of its printing."""
    wanted = ActionRequest(person, uuid4(), "there is paper now")
    if again:
        retry(book.pk, request=wanted)
    else:
        failed = book.commands.get(type="Print")
        skip_command(book.pk, str(failed.pk), request=wanted)


def by_title() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls():
        found[call.title].append(call)
    return found


def in_order(made: list[Call]) -> list[str]:
    """Return the commands that were called, each as often as it was called anew after another."""
    return [name for name, _ in groupby(call.command for call in made)]


@pytest.mark.full_size("200 books", seconds=240)
def test_commands_keep_their_order_though_workers_are_killed(
    hands: Workers, administrator: User
) -> None:
    storm = Storm(hands, 0.7, steps=4, seed=9)
    for number in range(BOOKS):
        event = BookClosed(f"book {number:03}", TROUBLES[number % len(TROUBLES)])
        start_process(Publishing, event, id=str(number), source="desk")
    half = BOOKS // 2
    done, failed = ("done",) * 4, ("done", "failed", "held", "held")
    skipped = ("done", "skipped", "done", "done")

    with storm.raging(kills=2) as until:
        until(lambda: standing() == {done: half, failed: half}, 60)
        called_so_far = Counter(call.command for call in calls())
        bring_paper()
        stuck = ProcessInstance.objects.filter(status=Status.FAILED)
        for place, book in enumerate(list(stuck.order_by("correlation_key"))):
            see_to(book, administrator, again=place % 2 == 0)
        ends = {done: half + half // 2, skipped: half // 2}
        until(lambda: standing() == ends, 60)

    kills = storm.counts["kills"]
    assert all(in_order(made) == list(AFTER_COMMIT) for made in by_title().values())
    assert len(by_title()) == BOOKS
    assert not any(call.late for call in calls())
    keys = {(call.title, call.command, call.key) for call in calls()}
    assert len(keys) == len({key[:2] for key in keys})
    # A kill meets one command, which is carried out again; what failed by itself was tried again as it must be.
    again = BOOKS // 4 * 2 + half // 2
    assert len(calls()) - BOOKS * len(AFTER_COMMIT) <= again + kills
    assert called_so_far["Ship"] - half <= kills
    assert Group.objects.count() == BOOKS
    assert set(ProcessInstance.objects.values_list("status")) == {(Status.WAITING,)}
    assert not Incident.objects.open().exists()
