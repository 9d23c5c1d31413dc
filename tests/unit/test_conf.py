"""The engine's settings, as a project's own settings give them."""

import math
from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from orchestrator.configuration.conf import Conf, SettingRefused, conf

SECONDS = (-10, 0, True, "10", "", None, math.nan, math.inf, 10**400)

BAD: list[tuple[dict[Any, Any], str]] = [
    *(({"LEASE_SECONDS": value}, "LEASE_SECONDS") for value in SECONDS),
    *(({"EVENT_ATTEMPTS": value}, "EVENT_ATTEMPTS") for value in (0.5, 5.0, True, 0)),
    ({"TRANSITIONS_LIMIT": math.inf}, "TRANSITIONS_LIMIT"),
    ({"PATIENCE_SECONDS": -0.1}, "PATIENCE_SECONDS"),
    ({"HEARTBEAT_SECONDS": 20}, "HEARTBEAT_SECONDS"),
    ({"LEASE_SECONDS": 2}, "HEARTBEAT_SECONDS"),
    ({"BACKOFF_SECONDS": 5, "BACKOFF_CAP_SECONDS": 4}, "BACKOFF_CAP_SECONDS"),
    ({"LEASE": 10}, "LEASE"),
    ({"lease_seconds": 10}, "lease_seconds"),
]


@pytest.mark.parametrize(("given", "key"), BAD, ids=str)
def test_what_cannot_be_used_is_refused_when_it_is_read_and_by_the_checks(
    given: dict[Any, Any], key: str, settings: Settings
) -> None:
    settings.PROCESSION = given

    for _ in range(2):
        with pytest.raises(SettingRefused) as refused:
            conf()
        assert str(refused.value).startswith(f"settings.PROCESSION['{key}'] ")
        assert len(str(refused.value).splitlines()) == 1
    [error] = run_checks(tags=["orchestrator"])
    assert (error.id, bool(error.hint)) == ("orchestrator.E007", True)
    assert error.msg.startswith(f"settings.PROCESSION['{key}'] ")


@pytest.mark.parametrize("given", [None, [], "LEASE_SECONDS=10", 10])
def test_what_is_no_dictionary_is_refused(given: object, settings: Settings) -> None:
    settings.PROCESSION = given

    with pytest.raises(SettingRefused, match=r"^settings.PROCESSION must be a dict"):
        conf()


def test_every_mistake_is_told_by_the_system_checks(settings: Settings) -> None:
    settings.PROCESSION = {"LEASE_SECONDS": -1, "EVENT_ATTEMPTS": 0.5, "LEASE": 1}

    found = run_checks(tags=["orchestrator"])

    assert [error.msg for error in found] == [
        "settings.PROCESSION['LEASE_SECONDS'] must be a number from 1 to 86,400, not -1.",
        "settings.PROCESSION['EVENT_ATTEMPTS'] must be a whole number from 1 to 1,000, not 0.5.",
        f"settings.PROCESSION['LEASE'] does not exist; there are {', '.join(Conf.model_fields)}.",
    ]


def test_without_a_dictionary_everything_has_its_default(settings: Settings) -> None:
    del settings.PROCESSION

    assert conf() == Conf()
    assert run_checks(tags=["orchestrator"]) == []


def test_what_is_read_once_is_kept_until_it_changes(settings: Settings) -> None:
    settings.PROCESSION = {"EVENT_ATTEMPTS": 3}
    first = conf()
    assert conf() is first

    settings.PROCESSION = {"EVENT_ATTEMPTS": 4}
    assert conf().EVENT_ATTEMPTS == 4

    settings.PROCESSION["EVENT_ATTEMPTS"] = 6  # in place
    assert conf().EVENT_ATTEMPTS == 6

    settings.PROCESSION["EVENT_ATTEMPTS"] = 0
    with pytest.raises(SettingRefused):
        conf()

    settings.PROCESSION["EVENT_ATTEMPTS"] = 6
    assert conf().EVENT_ATTEMPTS == 6
