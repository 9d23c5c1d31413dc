"""docs/backup.md, followed word for word: saved while workers run, and restored after they have gone on.

What was done after the backup is done again under the same keys, and nothing else is.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import QuerySet

from orchestrator import Receipt, start_process
from orchestrator.engine.invariants import violations
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    CommandStatus,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
)
from tests.apps.ordered_commands import handlers
from tests.apps.ordered_commands.handlers import Call, calls
from tests.apps.ordered_commands.processes import AFTER_COMMIT, BookClosed, Publishing
from tests.apps.random_graphs import steps
from tests.apps.random_graphs.processes import RandomGraph
from tests.apps.random_graphs.steps import Dice
from tests.services.crews import VISITS, knowing
from tests.services.database import another_database
from tests.services.patience import A_MINUTE, wait_for
from tests.services.program import environ
from tests.services.sizes import size
from tests.services.workers import Workers, said

ROOT: Path = settings.BASE_DIR
PAGE = (ROOT / "docs" / "backup.md").read_text()
SERVER = "postgresql://procession@127.0.0.1:5432/restored"
SERVED = connection.vendor == "postgresql"
FILE = ".procession/db.sqlite3"
BOOKS, LATER, GRAPHS = size(14, full=600), 4, size(2, full=4)
SOME = size(12, full=20)
"""Effects that there have been when the backup is made."""


def blocks(title: str) -> list[str]:
    """Return the commands that stand under a title."""
    part = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


@dataclass
class Follower:
    """Who does what the page says, with the places of the test's own for those that stand there."""

    folder: Path
    restored: str

    def do(self, commands: str) -> str:
        """Run commands of a shell; return what they have said, whatever their exit code."""
        own = str(connection.settings_dict["NAME"])
        named = urlsplit(self.restored).path.removeprefix("/")
        for there, here in {
            SERVER: self.restored,
            "DATABASE restored": f'DATABASE \\"{named}\\"',
            FILE: own,
            "manage.py": str(ROOT / "manage.py"),
        }.items():
            commands = commands.replace(there, here)
        path = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", commands],
            cwd=self.folder,
            env={**environ(), "PATH": path},
            capture_output=True,
            text=True,
            timeout=5 * A_MINUTE,
            check=False,
        )
        said = done.stdout + done.stderr
        # On a crowded machine work has been due for a minute.
        assert done.returncode == 0 or "outbox: " in said, said
        return said


assert handlers.__name__  # importing it has registered them
known = knowing(Publishing, RandomGraph)
pytestmark = pytest.mark.usefixtures("no_calls")


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    if SERVED and not shutil.which("pg_dump"):
        pytest.skip("there is no pg_dump")
    with another_database("restored") as address:
        if SERVED:  # the page makes it
            with connection.cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{urlsplit(address).path[1:]}"')
        yield Follower(tmp_path, address)


@contextmanager
def using(database: str) -> Iterator[None]:
    """Have the tests and all that they start use a restored database, where that is another one."""
    before = connection.settings_dict["NAME"]
    other = urlsplit(database).path.removeprefix("/")
    connection.settings_dict["NAME"] = other if SERVED else before
    definitions.forget_definitions()
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
        definitions.forget_definitions()


def send(first: int, number: int) -> list[Receipt]:
    """Tell of books, whose process ids are the sender's, and of graphs, each under an id of its own."""
    books = list[Receipt]()
    for place in range(first, first + number):
        pk = uuid5(NAMESPACE_URL, f"book {place}")
        event = BookClosed(f"book {place:03}")
        books.append(start_process(Publishing, event, id=str(place), process_id=pk))
    graphs = [start_process(RandomGraph, Dice(n, 8), id=str(n)) for n in range(GRAPHS)]
    return [*books, *graphs]


def all_done(books: int) -> bool:
    graphs = ProcessInstance.objects.filter(name=RandomGraph.name)
    ended = graphs.filter(status=Status.COMPLETED).count()
    called = done().filter(type__in=AFTER_COMMIT).count()
    return (called, ended) == (books * len(AFTER_COMMIT), GRAPHS)


def done() -> QuerySet[IssuedCommand]:
    return IssuedCommand.objects.filter(status=CommandStatus.DONE)


def effects(made: list[Call]) -> set[tuple[str, str]]:
    return {(call.title, call.command) for call in made}


@pytest.mark.full_size("600 books", seconds=600)
def test_what_was_done_after_the_backup_is_done_again_under_the_same_keys(
    hands: Workers, follower: Follower
) -> None:
    back_up, restore = blocks("PostgreSQL" if SERVED else "SQLite")
    look, work = blocks("Before anything runs")
    assert work == "python3 manage.py work\n"  # as it is started here

    hands.start()
    send(0, BOOKS)
    wait_for(lambda: len(calls()) >= SOME, 20, lambda: said(hands))
    follower.do(back_up)
    send(BOOKS, LATER)
    wait_for(lambda: all_done(BOOKS + LATER), 40, lambda: said(hands))
    hands.stop()
    before, visits = calls(), len(steps.calls(VISITS))
    connection.close()
    follower.do(restore)

    with using(follower.restored):
        told = follower.do(look)
        assert set(re.findall(r"^(\w+): ", told, re.MULTILINE)) <= {"outbox"}
        stored = set(map(str, done().values_list("pk", flat=True)))
        again = send(0, BOOKS + LATER)
        hands.start()
        wait_for(lambda: all_done(BOOKS + LATER), 40, lambda: said(hands))

        after = calls()[len(before) :]
        assert 0 < len(stored & {call.key for call in before}) < len(before)
        assert sum(not receipt.repeated for receipt in again) >= LATER
        # Nobody is called for what the backup has the end of, and whoever is called again is so under the same key.
        assert stored.isdisjoint(call.key for call in after)
        assert {call.title for call in after} >= {f"book {BOOKS:03}"}
        keys = {(call.title, call.command, call.key) for call in before + after}
        assert len(keys) == len(effects(before + after)) == len(effects(before))
        assert len({call.key for call in before + after}) == len(keys)
        # The same holds of steps.
        made = steps.calls(VISITS)
        of_a_visit = {(call.process, call.step, call.visit, call.item) for call in made}
        assert not any(call.late for call in made)
        assert len({call.key for call in made}) == len(of_a_visit)
        assert len(made) >= visits
        # And what was a part of a commit is there once.
        assert Group.objects.count() == BOOKS + LATER
        assert not Incident.objects.open().exists()
        assert violations() == []
        hands.stop()
