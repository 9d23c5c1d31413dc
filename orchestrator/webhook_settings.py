"""Who may send events, from where and how many: `settings.WEBHOOK_SOURCES`, `WEBHOOK_NETWORKS` and `WEBHOOK_RATES`.

A source of which anything is wrong takes nothing: a weak key would let in anybody, as would networks that are not
understood.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, Strict, ValidationInfo

from orchestrator.conf import (
    SECRET,
    SIGNING_KEY_MUST,
    SIGNING_KEYS_MUST,
    VARIABLES,
    Form,
    Setting,
    SigningKey,
    by_commas,
    number,
    text,
    whole,
)

RAREST, MOST = 0.0001, 1_000_000  # events a second
LONGEST_NAME = 100  # letters


def network(value: Any) -> IPv4Network | IPv6Network:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    return ip_network(text(value))  # of whole numbers, too, one could be made


def written_rate(value: Any, info: ValidationInfo) -> Any:
    """A rate as variables have it: "5,20" is 5 a second and 20 at once, "5" alone is 5 at once too."""
    if info.context != VARIABLES:
        return value
    often, _, burst = value.partition(",")
    number = float(often)
    return number, int(burst) if burst.strip() else math.ceil(min(number, MOST))


def is_name(value: str) -> bool:
    plain = value.isprintable() and "/" not in value and SECRET not in value
    return plain and 0 < len(value) <= LONGEST_NAME


SourceName = Annotated[
    str,
    Form(
        f"have the name of a source: up to {LONGEST_NAME} printable letters without /",
        is_name,
        hides=object,
    ),
]
SigningKeys = Annotated[
    list[Annotated[SigningKey, Form(SIGNING_KEY_MUST, hides=str)]],
    BeforeValidator(by_commas),
    Field(min_length=1, max_length=2),  # one, and the one that replaces it
    Form(
        "be a list of one signing key, or of two while one replaces the other",
        written=SIGNING_KEYS_MUST,
        hides=str,
    ),
]
Network = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(network),
    Form("be an address or a network such as 192.0.2.1 or 192.0.2.0/24"),
]
Networks = Annotated[
    list[Network],
    BeforeValidator(by_commas),
    Field(min_length=1),
    Form(
        "be a list of addresses and networks, one or more",
        written="list addresses and networks such as 192.0.2.1 or 192.0.2.0/24",
    ),
]
Often = Annotated[float, Strict(), number(RAREST, MOST, ": events a second")]
AtOnce = Annotated[int, Strict(), whole(1, MOST, ": events at once")]
Rate = Annotated[
    tuple[Often, AtOnce],
    BeforeValidator(written_rate),
    Form(
        "be a pair of numbers: how many events a second, and how many at once",
        written=f"be like 5 or 5,20, from {RAREST} to {MOST:,}",
    ),
]
"""How many events a second in the long run, and how many at once."""

EACH = Form("be a dictionary with an entry for each source")
SOURCES = Setting(
    "WEBHOOK_SOURCES",
    Annotated[dict[SourceName, SigningKeys], EACH],
    dict[str, list[str]](),
    "orchestrator.E013",
    'This makes a key, for the source as for its sender:\necho "whsec_$(head -c 24 /dev/urandom | base64)"\n'
    'Read it from the environment:\nWEBHOOK_SOURCES = {"bank": [os.environ["BANK_KEY"]]}',
)
NETWORKS = Setting(
    "WEBHOOK_NETWORKS",
    Annotated[dict[SourceName, Networks], EACH],
    dict[str, list[Network]](),
    "orchestrator.E013",
    "Write it like this, or leave out a source that may send from anywhere:\n"
    'WEBHOOK_NETWORKS = {"bank": ["192.0.2.0/24"]}',
)
RATES = Setting(
    "WEBHOOK_RATES",
    Annotated[dict[SourceName, Rate], EACH],
    dict[str, tuple[float, int]](),
    "orchestrator.E013",
    "Write it like this, or leave out a source that may send any number:\n"
    'WEBHOOK_RATES = {"bank": (5, 20)}',
)
WEBHOOKS: tuple[Setting[Any], ...] = SOURCES, NETWORKS, RATES


class Source(NamedTuple):
    """What the settings say of a source."""

    keys: list[str]
    networks: list[Network]
    """Those that it may send from; anywhere if there are none."""
    rate: Rate | None
    """How many it may send; any number if None."""


def source_named(name: str) -> Source | None:
    """What the settings say of a source; None if there is none of that name.

    Raises:
        SettingRefused: something of it cannot be used.
    """
    given = SOURCES.given()
    if isinstance(given, Mapping) and not given.get(name):
        return None
    keys, networks, rate = (_entry(one, name) for one in WEBHOOKS)
    return Source(keys, networks or [], rate)


def _entry(setting: Setting[Any], name: str) -> Any:
    """What a setting says of a source, whatever it says of others."""
    given = setting.given()
    if isinstance(given, Mapping):
        given = {name: given[name]} if name in given else {}
    return setting.read(given).get(name)


def of_nobody(sources: Any, limited: Any) -> Collection[Any]:
    """The sources that are limited and do not exist: the ones that are meant may send what they like."""
    if not (isinstance(sources, Mapping) and isinstance(limited, Mapping)):
        return ()
    return [source for source in limited if source not in sources]


def limits_of_nobody() -> Iterator[str]:
    """Give a line for each limit without effect."""
    for setting in WEBHOOKS[1:]:
        for source in of_nobody(SOURCES.given(), setting.given()):
            yield (
                f"{setting.place((source,))} is of a source that does not exist; {SOURCES.place((source,))} makes it."
            )
