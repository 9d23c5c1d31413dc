"""Workers and pages of the release before run beside today's, on today's tables, as in a rolling deploy."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from orchestrator.access_tokens import new_token_value, token_digest
from orchestrator.models import (
    AccessToken,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.testing import run
from tests.apps.two_releases import desk, handlers
from tests.apps.two_releases.processes import (
    Bill,
    Delivery,
    Inspection,
    Purchase,
    release,
)
from tests.services.crews import QUICK, knowing, told
from tests.services.database import NEEDS_SERVER
from tests.services.former_release import FormerRelease
from tests.services.patience import wait_for
from tests.services.program import Program, management_command
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer

pytestmark = NEEDS_SERVER  # SQLite is for one host, which is not deployed in turns

ORDERS = size(6, full=100)
"""That each side sends, before both releases work and while they do."""
WORKERS = str(size(1, full=2))
"""Of each release."""

assert handlers.__name__  # importing it has registered them
known = knowing(Purchase, Delivery, Bill, Inspection)


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> FormerRelease:
    return FormerRelease(tmp_path_factory.mktemp("former"), "two_releases")


@pytest.fixture
def settings_of_both(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None, valkey: ValkeyServer
) -> None:
    patience = {
        "PATIENCE_SECONDS": 3600
    }  # an early event is no incident on a slow machine
    told(monkeypatch, {**QUICK, **patience, "APPS": "tests.apps.two_releases"})


@pytest.fixture
def former_workers(former: FormerRelease, settings_of_both: None) -> Iterator[Program]:
    program = former.command("work", "--processes", WORKERS)
    yield program
    program.stop()


@pytest.fixture
def workers(settings_of_both: None) -> Iterator[Program]:
    program = management_command("work", "--processes", WORKERS)
    yield program
    program.stop()


def sent_by_both(former: FormerRelease, what: str, name: str) -> None:
    """Have both releases send for orders of their own."""
    orders = {side: [f"{side} {name} {n}" for n in range(ORDERS)] for side in "fo"}
    former.run(f"from tests.apps.two_releases import desk; desk.{what}({orders['f']})")
    getattr(desk, what)(orders["o"])


def at(step: str) -> int:
    """Return how many deliveries are at a step."""
    return StepRun.objects.filter(node=step, finished_at=None).count()


def where() -> object:
    return [*ProcessInstance.objects.values_list("name", "step", "status")], [
        *Incident.objects.open().values_list("message", flat=True)
    ]


@pytest.mark.full_size("400 orders", seconds=600)
def test_both_releases_bring_all_processes_to_their_ends(
    former: FormerRelease, former_workers: Program, workers: Program
) -> None:
    former_workers.start()
    sent_by_both(former, "place", "early")
    wait_for(lambda: at("arrival") == 2 * ORDERS, 60, where)
    workers.start()
    sent_by_both(former, "place", "late")
    sent_by_both(former, "end", "early")
    sent_by_both(former, "end", "late")
    completed = ProcessInstance.objects.filter(status=Status.COMPLETED)
    due = IssuedCommand.objects.filter(wake_at__isnull=False)

    wait_for(lambda: completed.count() == 16 * ORDERS, 120, where)
    wait_for(lambda: not due.exists(), 30, where)

    assert not InboxEvent.objects.filter(verdict=Verdict.FAILED).exists()
    assert [*Incident.objects.open().values_list("kind", "message")] == []
    ran = set(StepRun.objects.filter(node="weigh").values_list("result", flat=True))
    assert ran == {release(), str(former.folder)}


@pytest.fixture
def token(administrator: User) -> str:
    """Return an access token that today's code has made."""
    value, now = new_token_value(), timezone.now()
    AccessToken.objects.create(
        name="visitor",
        digest=token_digest(value),
        owner=administrator,
        created_at=now,
        expires_at=now + timedelta(days=1),
    )
    return value


def test_pages_and_api_of_the_release_before_answer(
    former: FormerRelease, settings_of_both: None, token: str
) -> None:
    desk.place(["page"])
    run()  # today's code writes what the pages show

    tell = f"from tests.apps.two_releases import desk; desk.tell({token!r})"
    found = json.loads(former.run(tell))

    assert {at: status for at, status in found.items() if status != 200} == {}
