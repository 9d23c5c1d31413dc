"""Fixtures that a module of tests makes: what the running code knows, and workers who know it too."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from django.conf import settings

from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.testing import registered
from tests.apps.random_graphs import steps
from tests.services.words import words
from tests.services.workers import Workers, hired, said

APPS = words("""
    broken_parts calls_that_follow interrupted_undo long_work many_together ordered_commands out_of_order
    process_managers random_graphs slow_readers subprocess_maps waiting_calls watched wide_graphs
""")
"""In tests/apps."""

VISITS: Path = settings.DATA_DIR / "visits"
"""Where the steps of random graphs note their calls."""

QUICK: dict[str, object] = {"BACKOFF_SECONDS": 0.1, "SWEEP_SECONDS": 0.2}
"""Settings of workers for whom nobody wants to wait."""


def knowing(
    *definitions: DefinitionClass, autouse: bool = True
) -> Callable[..., Iterator[None]]:
    """Return the fixture by which the running code knows some definitions while a module's tests run.

    For a whole module, as the invariants need them after each test.

    Args:
        definitions: which.
        autouse: whether all modules that have the fixture use it, or those alone that ask for it.
    """

    @pytest.fixture(scope="module", autouse=autouse)
    def known() -> Iterator[None]:
        with registered(*definitions):
            yield

    return known


def crew(**more: object) -> Callable[..., Iterator[Workers]]:
    """Return the fixture of two workers who know the apps; the test starts them.

    Args:
        more: settings of the engine, instead of or beside the quick ones.
    """

    @pytest.fixture
    def hands(
        monkeypatch: pytest.MonkeyPatch, transactional_db: None
    ) -> Iterator[Workers]:
        set_out(monkeypatch, **more)
        workers = Workers(processes=2)
        yield workers
        workers.stop()

    return hands


def beginning(
    knows: str,
    processes: int,
    forget: Callable[[], object] = lambda: None,
    **settings: object,
) -> Callable[..., Iterator[Callable[..., Workers]]]:
    """Return the fixture of a function that starts workers who know the apps.

    Args:
        knows: the fixture by which this process knows them too.
        processes: how many start, where the function is not told.
        forget: is called in the end.
        settings: of the engine, beside the quick ones; more may be told the function.
    """

    @pytest.fixture
    def begin(
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        transactional_db: None,
    ) -> Iterator[Callable[..., Workers]]:
        request.getfixturevalue(knows)
        set_out(monkeypatch, **settings)

        def start(processes: int = processes, **more: object) -> Workers:
            told(monkeypatch, more)
            return hire(processes)

        with hired() as hire:
            yield start
        forget()

    return begin


def told(monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, object]) -> None:
    """Let all that is started from now on have these settings of the engine."""
    for name, value in settings.items():
        monkeypatch.setenv(f"PROCESSION_{name}", str(value))


def set_out(monkeypatch: pytest.MonkeyPatch, **more: object) -> None:
    """Have all that is started from now on know the apps, with quick settings of the engine and perhaps more.

    What has the same environment is forked from one process that has loaded the project in it, and the project takes a
    second to load: so all know all of the apps.
    """
    monkeypatch.setenv("PROCESSION_APPS", ",".join(f"tests.apps.{a}" for a in APPS))
    monkeypatch.setenv(steps.LEDGER, str(VISITS))
    monkeypatch.setenv(steps.PAUSE, "0.01")
    told(monkeypatch, QUICK | more)


def unfinished(workers: Workers) -> str:
    """Say how far everything is, for a test that waits for more."""
    processes = ProcessInstance.objects.values_list("name", "step", "status")
    verdicts = InboxEvent.objects.values_list("verdict", flat=True)
    incidents = Incident.objects.open().values_list("message", flat=True)
    counts = (dict(Counter(rows)) for rows in (processes, verdicts, incidents))
    return f"{[*counts]}; workers alive: {workers.supervisor.alive}; they said: {said(workers)}"
