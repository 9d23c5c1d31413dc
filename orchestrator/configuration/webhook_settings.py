"""The sources of webhooks, their networks and rates: `settings.WEBHOOK_SOURCES`, `WEBHOOK_NETWORKS` and
`WEBHOOK_RATES`.

A source with a mistake in any of them accepts nothing: a weak key, or a network that was not understood, would let
anybody in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, Strict, ValidationInfo

from orchestrator.configuration.conf import (
    SECRET,
    SIGNING_KEY_MUST,
    SIGNING_KEYS_MUST,
    VARIABLES,
    Form,
    Setting,
    SigningKey,
    bounds,
    require_text,
    split_variable,
    whole_bounds,
)
from orchestrator.text import PLAIN_NAME, is_plain_name

RAREST, MOST = 0.0001, 1_000_000  # events a second
LONGEST_NAME = 100  # letters


def parse_network(value: Any) -> IPv4Network | IPv6Network:
    """Return an address or a network as one."""
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    return ip_network(require_text(value))  # ip_network takes whole numbers too


def parse_rate(value: Any, info: ValidationInfo) -> Any:
    """Parse the rate of a variable: "5,20" is 5 a second and 20 at once, "5" alone is 5 at once too."""
    if info.context != VARIABLES:
        return value
    often, _, burst = value.partition(",")
    number = float(often)
    return number, int(burst) if burst.strip() else math.ceil(min(number, MOST))


def is_source_name(value: str) -> bool:
    """Return whether a text can name a source."""
    plain = is_plain_name(value) and "/" not in value and SECRET not in value
    return plain and len(value) <= LONGEST_NAME


SourceName = Annotated[
    str,
    Form(
        f"have the name of a source: up to {LONGEST_NAME} letters without /, {PLAIN_NAME}",
        is_source_name,
        hides=object,
    ),
]
WebhookSigningKeys = Annotated[
    list[Annotated[SigningKey, Form(SIGNING_KEY_MUST, hides=str)]],
    BeforeValidator(split_variable),
    Field(min_length=1, max_length=2),  # one, and the one that replaces it
    Form(
        "be a list of one signing key, or of two while one replaces the other",
        written=SIGNING_KEYS_MUST,
        hides=str,
    ),
]
Network = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(parse_network),
    Form("be an address or a network such as 192.0.2.1 or 192.0.2.0/24"),
]
Networks = Annotated[
    list[Network],
    BeforeValidator(split_variable),
    Field(min_length=1),
    Form(
        "be a list of addresses and networks, one or more",
        written="list addresses and networks such as 192.0.2.1 or 192.0.2.0/24",
    ),
]
Often = Annotated[float, Strict(), bounds(RAREST, MOST, ": events a second")]
AtOnce = Annotated[int, Strict(), whole_bounds(1, MOST, ": events at once")]
Rate = Annotated[
    tuple[Often, AtOnce],
    BeforeValidator(parse_rate),
    Form(
        "be a pair of numbers: how many events a second, and how many at once",
        written=f"be like 5 or 5,20, from {RAREST} to {MOST:,}",
    ),
]
"""How many events a second in the long run, and how many at once."""

EACH = Form("be a dictionary with an entry for each source")
SOURCES = Setting(
    "WEBHOOK_SOURCES",
    Annotated[dict[SourceName, WebhookSigningKeys], EACH],
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
    """The settings of a source."""

    keys: list[str]
    networks: list[Network]
    """The networks that it may send from; empty for any."""
    rate: Rate | None
    """How many events it may send; None for any number."""


def find_source(name: str) -> Source | None:
    """Return the source of a name; None without one.

    Raises:
        SettingRefused: one of its settings has a mistake.
    """
    given = SOURCES.raw_value()
    if isinstance(given, Mapping) and not given.get(name):
        return None
    keys, networks, rate = (_entry(one, name) for one in WEBHOOKS)
    return Source(keys, networks or [], rate)


def _entry(setting: Setting[Any], name: str) -> Any:
    """Return what a setting says of a source; mistakes in other entries do not matter."""
    given = setting.raw_value()
    if isinstance(given, Mapping):
        given = {name: given[name]} if name in given else {}
    return setting.read(given).get(name)


def unknown_sources(sources: Any, limited: Any) -> Collection[Any]:
    """Return the sources that have a limit and no key; the sources that the limits are meant for have none."""
    if not (isinstance(sources, Mapping) and isinstance(limited, Mapping)):
        return ()
    return [source for source in limited if source not in sources]


def unknown_source_lines() -> Iterator[str]:
    """Yield a line for each limit of an unknown source."""
    for setting in WEBHOOKS[1:]:
        for source in unknown_sources(SOURCES.raw_value(), setting.raw_value()):
            yield (
                f"{setting.place((source,))} is of a source that does not exist; {SOURCES.place((source,))} makes it."
            )
