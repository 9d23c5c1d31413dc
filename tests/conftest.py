"""Which tests run, in which order and how long; and fixtures by layer: services, other processes, people, browser.

Which database a run uses is said by DATABASE_URL; without it, a SQLite file in the run's temporary data folder.
"""

import gc
import math
import os
import random
import re
import resource
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.utils import translation
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from monitoring.live.broadcaster import broadcaster
from orchestrator import queue
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.storage import definitions
from orchestrator.engine.work import backoff, worker_slice
from orchestrator.engine.work.worker_slice import HeldWork, UnstoredResult
from orchestrator.models import ProcessInstance
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.process_managers.fixtures import handler, parcels
from tests.services import chromium, emptying
from tests.services.client import Client, Read
from tests.services.database import close_in_mid_statement
from tests.services.exchange import exchange
from tests.services.invariants import broken
from tests.services.program import Program
from tests.services.site import Site
from tests.services.sizes import FULL
from tests.services.stage import slowness_now
from tests.services.valkey import ValkeyServer
from tests.services.words import words
from tests.services.workers import Workers

__all__ = ["exchange", "handler", "helpdesk", "parcels"]

HERE = Path(__file__).parent
MARKED = ("reliability", "browser")
SQLITE, POSTGRESQL = "sqlite", "postgresql"
HOMES = {
    "both": {SQLITE, POSTGRESQL},
    "engine": {POSTGRESQL},
    "reliability": {POSTGRESQL},
    "console": {SQLITE},
    "browser": {SQLITE},
}
"""The folders of tests that use a database, and the databases that `manage.py test` runs them on."""
CHECKED: pytest.StashKey[set[Path]] = pytest.StashKey()
"""The files of tests whose shared world was asked for its invariants."""
DEAR = set((HERE / "data" / "dear_tests.txt").read_text().split())
"""Tests, or files of tests, that compute for seconds."""
HANGS = 4
"""How many times as long as a test of full size may take is waited for it: slow cores need longer."""
COMPUTED: pytest.StashKey[float] = pytest.StashKey()
"""What had been computed when a test began."""
SHOWN = ("processinstance", "inboxevent", "operatoraction")
VIEWER_MAY = ("view_data_processinstance", *(f"view_{table}" for table in SHOWN))
BUTTONS = {
    "processinstance": """
        retry skip_command repair propose_repair approve_repair decline_repair escalate cancel redo migrate resume skip
        decide restart pause unpause assign acknowledge extend nudge
    """,
    "inboxevent": "redeliver discard deliver send",
    "bulkoperation": "run",
    "incident": "mark_handled assign_failures",
    "savedview": "share",
    "accesstoken": "use",
}
"""What an operator may do to the rows of a table, by its name."""
OPERATOR_MAY = (
    *VIEWER_MAY,
    *(f"{may}_{table}" for table, told in BUTTONS.items() for may in words(told)),
)


# What is made until all tests are collected stays: looking through it for garbage, again and again, finds none.
gc.disable()
emptying.quicken()
# Where the engine runs in this process, a test lets the pauses between attempts pass; none passes by itself meanwhile.
settings.PROCESSION = {**settings.PROCESSION, "BACKOFF_SECONDS": 30.0}
# And what it has claimed it begins, however slow the machine is; else what runs before what would depend on that.
draining.BEGIN_SECONDS = 30.0  # type: ignore[attr-defined]  # it is that of another module
draining.TURN_SECONDS = 30.0
# Files are the live site's to serve; a client of this process would look for them all anew each time.
settings.SERVESTATIC_USE_FINDERS = settings.SERVESTATIC_USE_STATIC_ROOT = False


class InGroups(HeldWork):
    """Nobody supervises this worker, and results are held and stored in groups as if somebody did."""

    def show_result(self, result: UnstoredResult) -> bool:
        return True


# Workers of this process hold results on one database and store each at once on the other: both ways are tested.
if connection.vendor == "postgresql":
    draining.UNSEEN = InGroups()  # type: ignore[attr-defined]  # it is that of another module


@receiver(connection_created)
def take_few_values(connection: Any, **kwargs: object) -> None:
    """Let a statement of SQLite take as many values as where it was built without a larger limit."""
    if connection.vendor == "sqlite":
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)


def folder(path: Path) -> str:
    """Return the folder of tests/ that the test file `path` is in, "" for tests/ itself."""
    parts = path.relative_to(HERE).parts
    return parts[0] if len(parts) > 1 else ""


def databases(item: pytest.Item) -> set[str]:
    """Return the databases on which `manage.py test` runs a test; with `--full`, both if it depends on them."""
    found = HOMES.get(folder(item.path), {SQLITE})
    if FULL and folder(item.path) in HOMES:
        found = {SQLITE, POSTGRESQL}
    once = item.get_closest_marker("once") is not None
    return {SQLITE} if once and SQLITE in found else found


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that compute for seconds, before `-m` is looked at."""
    name = item.nodeid.removeprefix("tests/")
    if DEAR & {name, name.partition("[")[0], name.partition("::")[0]}:
        item.add_marker("dear")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark tests by their folder; leave those to another run of `manage.py test` that it has on another database.

    Tell the command by a file that there are tests for PostgreSQL.
    """
    if told := os.environ.get("PROCESSION_TESTS_PLACED"):
        here = POSTGRESQL if os.environ.get("DATABASE_URL") else SQLITE
        if any(POSTGRESQL in databases(item) for item in items):
            Path(told).touch()
        left = [item for item in items if here not in databases(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if here in databases(item)]
    # Browser tests come last: the loop of their library keeps asynchronous tests that follow from having their own.
    items.sort(key=lambda item: folder(item.path) == "browser")
    for item in items:
        if folder(item.path) in MARKED:
            item.add_marker(folder(item.path))
        if FULL and (mark := item.get_closest_marker("full_size")):
            item.user_properties += [
                ("full_size", mark.args[0]),
                ("seconds_at_most", mark.kwargs["seconds"]),
            ]
            patience = mark.kwargs["seconds"] * HANGS
            if patience > float(config.getini("timeout")):
                item.add_marker(pytest.mark.timeout(patience))


def pytest_collection_finish() -> None:
    """Look for garbage from now on; what is there stays until the end, and the collector need not look through it."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """End the announcing of changes while pytest still captures: what is logged afterwards has nowhere to go."""
    broadcaster().end()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note what this process, and the processes that it has waited for, have computed before the test."""
    item.stash[COMPUTED] = computed()


def computed() -> float:
    """Return the seconds of a core that this process and those that it has waited for have taken."""
    own, others = map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hold tests of full size to their time; show with a failure what the site and the workers have said last."""
    if call.when == "teardown":
        taken = computed() - item.stash[COMPUTED]
        item.user_properties.append(("computing", f"{taken:.2f}"))
    report = yield
    told = dict(item.user_properties)
    at_most = float(str(told.get("seconds_at_most", math.inf)))
    if report.when == "call" and report.passed and report.duration > at_most:
        at_most *= slowness_now()
        if report.duration > at_most:
            report.outcome = "failed"
            report.longrepr = f"{report.duration:.0f} s instead of {at_most:.0f} s at most on these cores"
    if report.failed:
        close_in_mid_statement(connection)
        for program in programs(item.funcargs.values()):
            log = program.log
            said = log.read_text(errors="replace") if log.exists() else ""
            report.sections.append((f"log of {program.child.name}", said[-4000:]))
    return report


def programs(fixtures: Iterable[object]) -> Iterator[Program]:
    """Yield the programs that a test has started."""
    for fixture in fixtures:
        if isinstance(fixture, Site):
            yield fixture.program
        if isinstance(fixture, Workers):
            yield fixture.supervisor


# Services


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """Run the Valkey that the settings point at."""
    server = ValkeyServer(settings.DATA_DIR, settings.VALKEY_SOCKET)
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def real_services(request: pytest.FixtureRequest) -> None:
    """Give the tests that go beyond one process a running, empty Valkey."""
    if folder(request.path) in HOMES:
        server: ValkeyServer = request.getfixturevalue("valkey")
        server.start()
        server.forget_everything()


@pytest.fixture(autouse=True)
def forgotten_definitions() -> None:
    """Forget what earlier tests had: keys of definitions in their tables, a Redis that was away, a language."""
    definitions.forget_definitions()
    queue._silent["until"] = 0.0
    translation.deactivate()


@pytest.fixture(autouse=True)
def punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bounds of work in this process be what they are on an idle machine."""
    monkeypatch.setattr(worker_slice.lateness, "measure", lambda: None)
    monkeypatch.setattr(worker_slice.lateness, "factor", 1.0)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Let pauses between attempts be spread by chance again."""
    monkeypatch.setattr(backoff, "spread", random.Random())
    return backoff.spread


class Longest(random.Random):
    """Lets every pause between attempts be the longest possible, and notes these.

    One that chance makes next to nothing would be over before a test has looked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def uniform(self, low: float, high: float) -> float:
        self.pauses.append(high)
        return high


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every pause between attempts be the longest possible; return these."""
    longest = Longest()
    monkeypatch.setattr(backoff, "spread", longest)
    return longest.pauses


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Let no commit to the test database wait for the disk, in any process: no test lets this server crash."""
    if connection.vendor == "postgresql":
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit TO off")
        connection.close()  # sessions that begin now have it


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Open a transaction for a module's own world: a fixture of its scope that asks for this one may write rows.

    They are there for each of its tests marked `django_db`, which undoes only what it does itself, and are undone after
    the last. Tests that commit for real see none of them, and cannot be in such a module. Let such a fixture return
    ids: an object would keep what one test did to it.
    """
    whole = transaction.atomic()
    whole._from_testcase = True  # type: ignore[attr-defined]  # a durable block is refused inside any other
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(backoff, "spread", Longest())
        definitions.forget_definitions()
        with whole:
            let_compute()
            yield
            transaction.set_rollback(True)


def let_compute() -> None:
    """Let the transaction of a test last while it only computes: the server would end one that is idle for 5 s."""
    if connection.vendor == "postgresql" and connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


@pytest.fixture(autouse=True)
def unhurried(request: pytest.FixtureRequest) -> None:
    """Let the transaction around a test last, however slow the machine is."""
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("db")
        let_compute()


class Writes:
    """Notes whether a test has written rows of the engine's; for `connection.execute_wrapper`."""

    STATEMENT = re.compile(
        r'\b(INSERT INTO|UPDATE|DELETE FROM) "?orchestrator_', re.IGNORECASE
    )

    def __init__(self) -> None:
        self.seen = False

    def __call__(
        self, execute: Any, sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        self.seen = self.seen or bool(self.STATEMENT.search(sql))
        return execute(sql, params, many, context)


@pytest.fixture(autouse=True)
def invariants(request: pytest.FixtureRequest, real_services: None) -> Iterator[None]:
    """After each test that uses the database for real, ask whether anything broke that must hold always.

    Of the tests that share a world of their module, those that have only read it need not ask again.
    """
    if folder(request.path) not in HOMES or not request.node.get_closest_marker(
        "django_db"
    ):
        yield
        return
    request.getfixturevalue("db")  # and so is still there when the test is over
    writes = Writes()
    with connection.execute_wrapper(writes):
        yield
    checked: set[Path] = request.config.stash.setdefault(CHECKED, set())
    if (
        "module_db" in request.fixturenames
        and not writes.seen
        and request.path in checked
    ):
        return
    checked.add(request.path)
    # A test that looks at pages runs no workers, and on a busy machine it takes minutes.
    looks = folder(request.path) == "browser"
    nobody_works = looks and "workers" not in request.fixturenames
    assert broken(nobody_works=nobody_works) == []


# Other processes


@pytest.fixture(scope="session")
def live_site(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[Site]:
    """Serve the test database with the real web server; tests that use it need a transactional database."""
    site = Site()
    site.start()
    yield site
    site.stop()


@pytest.fixture
def workers(transactional_db: None, valkey: ValkeyServer) -> Iterator[Workers]:
    """Run a supervisor with two workers on the test database."""
    workers = Workers(processes=2)
    workers.start()
    yield workers
    workers.stop()


# People


@cache
def permissions() -> dict[str, int]:
    """Return the keys of the engine's permissions, which migrations make once."""
    return dict(
        Permission.objects.filter(content_type__app_label="orchestrator").values_list(
            "codename", "pk"
        )
    )


def person(name: str, *allowed: str) -> User:
    """Return a new user with permissions of the engine."""
    user = User.objects.create_user(name)
    given = User.user_permissions.through
    given.objects.bulk_create(
        given(user_id=user.pk, permission_id=permissions()[codename])
        for codename in allowed
    )
    return user


@pytest.fixture
def viewer(db: None) -> User:
    """Return somebody who may look at everything and change nothing."""
    return person("viewer", *VIEWER_MAY)


@pytest.fixture
def operator(db: None) -> User:
    """Return somebody who may look, and use every button."""
    return person("operator", *OPERATOR_MAY)


@pytest.fixture
def administrator(db: None) -> User:
    """Return somebody who may do everything."""
    return User.objects.create_superuser("administrator")


@pytest.fixture
def stranger(db: None) -> User:
    """Return somebody who may sign in and nothing else."""
    return User.objects.create_user("stranger")


@pytest.fixture
def client() -> Client:
    """Return a client that nobody is signed in with."""
    return Client()


def of(user: User) -> Client:
    """Return a client of its own that somebody is signed in with."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewing(viewer: User) -> Client:
    return of(viewer)


@pytest.fixture
def operating(operator: User) -> Client:
    return of(operator)


@pytest.fixture
def admin(administrator: User) -> Client:
    return of(administrator)


@pytest.fixture
def read(operating: Client) -> Read:
    """Return what reads any page as an operator, with the headers that are given."""

    def page(address: str, status: int = 200, **headers: str) -> str:
        return operating.read(address, status=status, headers=headers)

    return page


@pytest.fixture
def show(operating: Client) -> Read:
    """Return what reads a list, that of processes if none is named, with what is asked of it; as people see it."""

    def shown(path: str = "/processes/", **given: str) -> str:
        return unescape(operating.read(f"{path}?{urlencode(given)}"))

    return shown


@pytest.fixture
def ask(operating: Client) -> Read:
    """Return what gives the page that a text in the box leads an operator to, or where it leads on to."""

    def answered(text: str) -> str:
        answer = operating.get(f"/find/?q={quote(text)}")
        assert answer.status_code in (200, 302)
        return answer.get("Location") or answer.content.decode()

    return answered


@pytest.fixture
def page_of(operating: Client) -> Read:
    """Return what reads the page of a process as an operator."""

    def page(process: ProcessInstance, query: str = "") -> str:
        return operating.read(f"/processes/{process.pk}/{query}")

    return page


# Browser


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Run what drives browsers. Chromium is installed before, if there is none: that may run it too."""
    chromium.installed()
    # Django would take Playwright's event loop in this thread for asynchronous code of the test.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Run a real Chromium."""
    browser = playwright.chromium.launch(
        executable_path=chromium.installed(), args=list(chromium.FLAGS)
    )
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, live_site: Site) -> Iterator[Page]:
    """Open an empty page of a fresh browser profile; addresses may be relative to the live site."""
    context = browser.new_context(base_url=live_site.url)
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()
