"""What is asked over the network keeps no page waiting, and is believed silent only when it is."""

from collections.abc import Callable
from threading import Event

import pytest

from monitoring.probes import pulse
from monitoring.probes.pulse import Pulse
from tests.services.cases import cases
from tests.services.patience import wait_for


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "WAIT", 0.01)
    monkeypatch.setattr(pulse, "AGAIN", 0.0)


def test_s1_3_what_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = Event()
    frozen = Pulse(answered.wait)

    assert frozen.beat().up is None  # it came back, though nothing was answered
    monkeypatch.setattr(pulse, "SILENT", 0.0)
    silent = frozen.beat()
    assert silent.up is False
    assert silent.since is not None
    assert frozen.beat().since == silent.since  # since it was first noticed

    answered.set()
    wait_for(lambda: frozen.beat().up is True, 10)
    assert frozen.beat().since is None


def test_s1_3_one_question_is_asked_at_a_time() -> None:
    asked, answered = [], Event()

    def answers() -> bool:
        asked.append(1)
        return answered.wait()

    pages = Pulse(answers)
    for _ in range(20):
        pages.beat()
    assert len(asked) == 1
    answered.set()


def refused() -> bool:
    raise ConnectionError


@cases("answers", refused, lambda: False)
def test_s1_3_what_fails_or_says_no_is_silent(answers: Callable[[], bool]) -> None:
    away = Pulse(answers)
    wait_for(lambda: away.beat().up is False, 10)
    assert away.beat().since is not None
