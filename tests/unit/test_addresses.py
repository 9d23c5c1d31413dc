"""Addresses that are filled in are those that Django finds, wherever the project has put the console."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from django.urls import NoReverseMatch, reverse, set_script_prefix
from django.utils import translation

from monitoring.base.addresses import url_for

PROCESS = uuid4()
VIEWS: list[tuple[str, list[UUID | int | str]]] = [
    ("monitoring:instance", [PROCESS]),
    ("monitoring:act", [PROCESS, "retry"]),
    ("monitoring:act", [PROCESS, "cancel"]),
    ("monitoring:act-on-step", [PROCESS, 7, "decide"]),
    ("monitoring:act-on-step", [UUID(int=0), 2**63 - 1, "decide"]),
    ("monitoring:act-on-event", [1_000_000, "redeliver"]),
    ("monitoring:waits", []),
]


@pytest.fixture(params=["/", "/ops/", "/ops {0} %s/", "/日本/"])
def prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    set_script_prefix(request.param)
    yield request.param
    set_script_prefix("/")


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(("name", "parts"), VIEWS)
def test_it_is_what_django_finds(
    name: str, parts: list[UUID | int | str], language: str, prefix: str
) -> None:
    with translation.override(language):
        for _ in range(2):  # the second one is filled in
            assert url_for(name, *parts) == reverse(name, args=parts)


def test_another_row_has_another_address() -> None:
    for number in (1, 2):
        address = url_for("monitoring:act-on-event", number, "discard")
        assert address == f"/events/{number}/discard/"


def test_an_address_that_there_is_not_is_none() -> None:
    with pytest.raises(NoReverseMatch):
        url_for("monitoring:act-on-event", PROCESS, "discard")
