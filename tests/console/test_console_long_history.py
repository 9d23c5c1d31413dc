"""What a page of a process looks at stays the same however long the history of the process is."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.process import timeline
from monitoring.process.revision import moment, transitions
from orchestrator.testing import run
from tests.services.cases import words
from tests.services.client import Client
from tests.services.long_history import lengthen
from tests.services.looked_at import looked_at
from tests.services.sizes import size

pytestmark = pytest.mark.django_db

SHORT = 500
LONG = size(usual=4_000, full=50_000)
FEW = 40
"""What one look takes at most, so that a short history is long enough for each of them."""

LOOKS = [
    *words(
        """?at=1 ?at={middle} ?at={last} ?at={middle}&beside=now ?before={middle}
        history-rows?before={last} history-rows?before={middle}
        history-rows?before={middle}&at={middle} picture.svg?at={middle}"""
    ),
    "",
]


@pytest.fixture(scope="module")
def histories(module_db: None) -> dict[int, UUID]:
    """Return two processes by the number of their transitions, the newer events of the longer one."""
    now = timezone.now()
    ends = {SHORT: now - timedelta(seconds=LONG + 60), LONG: now}
    found = {}
    for number, end in ends.items():
        found[number] = place_order(Destination.EXTERNAL, f"{number} MWh").process_id
        run()
        lengthen(found[number], number, end)
    return found


@pytest.fixture
def processes(
    histories: dict[int, UUID], monkeypatch: pytest.MonkeyPatch
) -> dict[int, UUID]:
    """Return them, where one look takes few at most."""
    for module, name, most in (
        (transitions, "LOOKED_AT", FEW),
        (moment, "VISITS", FEW),
        (timeline, "BARS", FEW // 2),
        (timeline, "KNOTS", FEW),
        (transitions, "SHORT", FEW),
    ):
        monkeypatch.setattr(module, name, most)
    return histories


@pytest.fixture(autouse=True)
def invariants() -> None:
    """Ask for none: these rows are not the engine's."""


def test_s4_4_no_look_at_a_process_grows_with_its_history(
    processes: dict[int, UUID], admin: Client
) -> None:
    grown = []
    for look in LOOKS:
        found = {}
        for number, pk in processes.items():
            place = look.format(middle=number // 2, last=number - 1)
            path = f"/processes/{pk}/{place}"

            admin.read(path)  # what is kept is there then
            found[number] = looked_at(partial(admin.read, path))
        # PostgreSQL may pass over the rows of the short one on its way to those of the long one.
        if found[LONG] > found[SHORT] * 1.2 + 2 * SHORT:
            grown.append(f"{look or 'now'}: {found}")

    assert not grown, "\n".join(grown)


def test_s4_4_the_middle_of_a_long_history_has_all_that_happened_there(
    processes: dict[int, UUID], admin: Client
) -> None:
    pk, middle = processes[LONG], LONG // 2

    text = admin.read(f"/processes/{pk}/history-rows?before={middle}")

    for revision in range(middle - 50, middle):
        assert f'id="revision-{revision}"' in text
    assert text.count("is-event") == 5
    assert text.count("is-transition") == 50


def test_s4_3_the_page_of_a_long_history_says_what_it_has_looked_at(
    processes: dict[int, UUID], admin: Client
) -> None:
    text = admin.read(f"/processes/{processes[LONG]}/")

    assert "the first 40 transitions and the last 40" in text
    assert "Only the visits around this moment are drawn" in text
    assert "40+\N{MULTIPLICATION SIGN}" not in text  # several steps share them
    assert "+\N{MULTIPLICATION SIGN}" in text
