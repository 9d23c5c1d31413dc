"""The engine's settings, as a project's own settings give them."""

import math
from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from orchestrator.conf import Conf, SettingRefused, conf

BAD: list[tuple[dict[Any, Any], str]] = [
    ({"LEASE_SECONDS": -10}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": 0}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": True}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": "10"}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": ""}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": None}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": math.nan}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": math.inf}, "LEASE_SECONDS"),
    ({"LEASE_SECONDS": 10**400}, "LEASE_SECONDS"),
    ({"EVENT_ATTEMPTS": 0.5}, "EVENT_ATTEMPTS"),
    ({"EVENT_ATTEMPTS": 5.0}, "EVENT_ATTEMPTS"),
    ({"EVENT_ATTEMPTS": True}, "EVENT_ATTEMPTS"),
    ({"EVENT_ATTEMPTS": 0}, "EVENT_ATTEMPTS"),
    ({"TRANSITIONS_LIMIT": math.inf}, "TRANSITIONS_LIMIT"),
    ({"PATIENCE_SECONDS": -0.1}, "PATIENCE_SECONDS"),
    ({"HEARTBEAT_SECONDS": 20}, "HEARTBEAT_SECONDS"),
    ({"LEASE_SECONDS": 2}, "HEARTBEAT_SECONDS"),
    ({"BACKOFF_SECONDS": 5, "BACKOFF_CAP_SECONDS": 4}, "BACKOFF_CAP_SECONDS"),
    ({"LEASE": 10}, "LEASE"),
    ({"lease_seconds": 10}, "lease_seconds"),
]

bad = pytest.mark.parametrize(("given", "key"), BAD, ids=str)


@bad
def test_what_cannot_be_used_is_refused_when_it_is_read(
    given: dict[Any, Any], key: str, settings: Settings
) -> None:
    settings.PROCESSION = given

    for _ in range(2):
        with pytest.raises(SettingRefused) as refused:
            conf()
        assert str(refused.value).startswith(f"settings.PROCESSION['{key}'] ")
        assert len(str(refused.value).splitlines()) == 1


@bad
def test_it_is_an_error_of_the_system_checks(
    given: dict[Any, Any], key: str, settings: Settings
) -> None:
    settings.PROCESSION = given

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


def test_without_a_dictionary_everything_has_its_default(
    settings: Settings,
) -> None:
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
