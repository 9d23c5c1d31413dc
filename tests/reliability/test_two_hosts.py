"""Two hosts work on one database and one Redis, and one of them is cut off.

Both are namespaces of this machine: their networks are their own, and as containers may they have the same name and the
same process ids.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group

from orchestrator import start_process
from orchestrator.models import (
    CommandStatus,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Worker,
)
from tests.apps.ordered_commands import handlers
from tests.apps.ordered_commands.handlers import calls
from tests.apps.ordered_commands.processes import AFTER_COMMIT, BookClosed, Publishing
from tests.apps.watched.processes import Watched, WatchedInside
from tests.apps.watched.steps import Work, begun, folder, open_gate
from tests.reliability.silent_line import SilentLine, postgresql
from tests.services.crews import knowing, set_out
from tests.services.database import NEEDS_SERVER, led_over
from tests.services.hosts import NAME, REMEDY, Host, hosts
from tests.services.patience import bar, wait_for
from tests.services.program import Program
from tests.services.sizes import first_of, size
from tests.services.valkey import ValkeyServer

pytestmark = NEEDS_SERVER  # SQLite is for one host

LEASE = 3.0  # seconds
RECOVERY = LEASE + 3
BOOKS = size(6, full=75)
"""For each time that a host is cut off."""
SOME = size(12, full=20)
"""Calls that there have been of them when it is."""


assert handlers.__name__  # importing it has registered them
known = knowing(Publishing, Watched, WatchedInside)

Begin = Callable[[Host], Program]


@pytest.fixture
def begin(
    no_calls: None,
    transactional_db: None,
    valkey: ValkeyServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Begin]:
    """Return a function that has a host work, by ways of its own to the database and to Redis."""
    set_out(monkeypatch, LEASE_SECONDS=LEASE, HEARTBEAT_SECONDS=0.5)
    lines: list[SilentLine] = []

    def run(host: Host) -> Program:
        database = SilentLine(postgresql(), host.machine)
        redis = SilentLine(str(valkey.socket), host.machine)
        lines.extend([database, redis])
        before = Worker.objects.count()
        with monkeypatch.context() as own:
            led = urlsplit(led_over(database.port))
            netloc = led.netloc.replace("127.0.0.1", host.machine)
            own.setenv("DATABASE_URL", led._replace(netloc=netloc).geturl())
            own.setenv("REDIS_URL", f"redis://{host.machine}:{redis.port}/0")
            program = host.command("work", "--processes", "1")
            program.start()
        wait_for(lambda: Worker.objects.count() > before, 20, program.log.read_text)
        return program

    yield run
    for line in lines:
        line.close()
    shutil.rmtree(folder())


@pytest.fixture
def both() -> Iterator[list[Host]]:
    with hosts(2) as found:
        yield found or pytest.skip(REMEDY)


def has_begun(name: str, times: int) -> bool:
    return len(begun(name)) >= times


def have_been_called(number: int) -> bool:
    return len(calls()) >= number


def all_done() -> bool:
    commands = IssuedCommand.objects.exclude(status=CommandStatus.DONE)
    steps = ProcessInstance.objects.exclude(name=Publishing.name)
    return not (commands.exists() or steps.exclude(status=Status.COMPLETED).exists())


def said(*programs: Program) -> str:
    return "\n".join(program.log.read_text()[-2000:] for program in programs)


@pytest.mark.parametrize("workflow", first_of([WatchedInside, Watched]))
def test_work_goes_on_when_a_host_is_cut_off_and_nothing_is_done_twice(
    begin: Begin, both: list[Host], workflow: type[Watched | WatchedInside]
) -> None:
    lonely, other = both
    first = begin(lonely)
    start_process(workflow, Work("taken over", "wait 1"))
    wait_for(partial(has_begun, "taken over", 1), 10, lambda: said(first))
    second = begin(other)
    assert [*Worker.objects.values_list("host")] == [(NAME,)] * 2
    assert len(set(Worker.objects.values_list("pid"))) == 1  # told apart all the same
    own = set(Worker.objects.values_list("id", flat=True))

    lonely.cut()
    begun_at = time.monotonic()
    wait_for(partial(has_begun, "taken over", 2), RECOVERY, lambda: said(second))
    assert time.monotonic() - begun_at < bar(RECOVERY)
    open_gate(1)  # for both: the one that is cut off believes that it goes on
    wait_for(all_done, 10, lambda: said(second))
    left = Worker.objects.filter(pk__in=own)
    wait_for(lambda: left.count() == 1, 4 * LEASE, lambda: said(second))

    lonely.mend()
    wait_for(lambda: Worker.objects.count() == 2, 20, lambda: said(first))
    assert StepRun.objects.get().attempt == 2
    if workflow is WatchedInside:  # what it writes is a part of the commit
        assert Group.objects.count() == 1
    other.stop(second)
    start_process(Watched, Work("afterwards", "sleep"))
    wait_for(all_done, 20, lambda: said(first))
    assert StepRun.objects.get(instance__data__name="afterwards").attempt == 1
    assert not Incident.objects.open().exists()


@pytest.mark.full_size("300 books, cut off four times", seconds=240)
def test_commands_are_carried_out_once_but_for_those_that_a_cut_has_met(
    begin: Begin, both: list[Host]
) -> None:
    programs = [begin(host) for host in both]
    cuts = size(2, full=4)
    for cut in range(cuts):
        enough = len(calls()) + SOME
        for number in range(cut * BOOKS, (cut + 1) * BOOKS):
            start_process(Publishing, BookClosed(f"book {number}"), id=str(number))
        wait_for(partial(have_been_called, enough), 20, lambda: said(*programs))
        both[cut % 2].cut()
        time.sleep(LEASE / 2 if cut % 2 else LEASE + 1)  # a short one, and a long
        both[cut % 2].mend()
        wait_for(all_done, 30, lambda: said(*programs))

    made = calls()
    once = Counter((call.title, call.command) for call in made)
    assert len(once) == cuts * BOOKS * len(AFTER_COMMIT)
    assert len({call.key for call in made}) == len(once)  # always with the same key
    assert len(made) - len(once) <= cuts
    assert not any(call.late for call in made)
    # What a host had claimed counts an attempt when its lease runs out, begun or not: nobody can know any more.
    assert not IssuedCommand.objects.filter(attempt__gt=2).exists()
    assert Group.objects.count() == cuts * BOOKS
    assert not Incident.objects.open().exists()
