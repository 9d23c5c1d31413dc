"""Who may send events, from where and how many: `settings.WEBHOOK_SOURCES`, `WEBHOOK_NETWORKS` and `WEBHOOK_RATES`.

What can be used is decided here, for the variables of the bundled project, the system check and each request. A source
of which anything is wrong takes nothing: a weak key would let in anybody, as would networks that are not understood.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, NamedTuple

from django.conf import settings

from orchestrator.conf import SettingMistake, SettingRefused, text
from orchestrator.signing_keys import LEAST_KEY, PREFIX, signing_key

Network = IPv4Network | IPv6Network
Rate = tuple[float, int]
"""How many events a second in the long run, and how many at once."""

MOST_KEYS = 2  # one, and the one that replaces it
RAREST, MOST = 0.0001, 1_000_000  # events a second
LONGEST_NAME = 100  # letters


def network(value: Any) -> Network:
    if isinstance(value, Network):
        return value
    return ip_network(text(value))  # of whole numbers, too, one could be made


def a_second(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no number")
    if not RAREST <= value <= MOST:
        raise ValueError("out of bounds")
    return value


def at_once(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no whole number")
    if not 1 <= value <= MOST:
        raise ValueError("out of bounds")
    return value


def written_rate(value: str) -> Rate:
    """A rate as variables have it: "5,20" is 5 a second and 20 at once, "5" alone is 5 at once too."""
    often, _, burst = value.partition(",")
    number = a_second(float(often))
    return number, at_once(int(burst) if burst.strip() else math.ceil(number))


class Source(NamedTuple):
    """What the settings say of a source."""

    keys: list[str]
    networks: list[Network]
    """Those that it may send from; anywhere if there are none."""
    rate: Rate | None
    """How many it may send; any number if None."""


class _Part(NamedTuple):
    """One of what a setting lists of a source."""

    must: str
    read: Callable[[Any], Any]


class _SourceSetting(NamedTuple):
    """A dictionary with a list, or a pair, for each source; a list may go on with parts like the last one."""

    name: str
    must: str
    parts: tuple[_Part, ...]
    least: int
    most: float
    remedy: str

    def given(self) -> Mapping[Any, Any]:
        """Raises SettingRefused: the setting is no dictionary."""
        given = getattr(settings, self.name, {})
        if not isinstance(given, Mapping):
            raise SettingRefused(
                f"settings.{self.name} must be a dictionary with an entry for each source, not {_kind(given)}."
            )
        return given

    def mistakes(self, source: Any, about: Any) -> Iterator[str]:
        """What is wrong with what is said `about` a source."""
        place = f"settings.{self.name}[{_shown(source)}]"
        if not _is_name(source):
            yield (
                f"{place} must have the name of a source: up to {LONGEST_NAME} printable letters without /."
            )
        if not isinstance(about, list | tuple):
            yield f"{place} must {self.must}, not {_kind(about)}."
        elif not self.least <= len(about) <= self.most:
            yield f"{place} must {self.must}, not {len(about)}."
        else:
            for index, part in enumerate(about):
                asked = self._part(index)
                if _refuses(asked.read, part):
                    yield f"{place}[{index}] must {asked.must}{self._but(part)}."

    def read(self, about: Any) -> list[Any]:
        return [self._part(index).read(part) for index, part in enumerate(about)]

    def _part(self, index: int) -> _Part:
        return self.parts[min(index, len(self.parts) - 1)]

    def _but(self, part: Any) -> str:
        """What it is instead; of a key nothing but its kind may be said."""
        if self is not _KEYS:
            return f", not {_shown(part)}"
        return "" if isinstance(part, str) else f", not {_kind(part)}"


_KEYS = _SourceSetting(
    "WEBHOOK_SOURCES",
    "be a list of one signing key, or of two while one replaces the other",
    (_Part(f"be {PREFIX} and the base64 of {LEAST_KEY} bytes or more", signing_key),),
    1,
    MOST_KEYS,
    'This makes a key, for the source as for its sender:\necho "whsec_$(head -c 24 /dev/urandom | base64)"\n'
    'Read it from the environment:\nWEBHOOK_SOURCES = {"bank": [os.environ["BANK_KEY"]]}',
)
_NETWORKS = _SourceSetting(
    "WEBHOOK_NETWORKS",
    "be a list of addresses and networks, one or more",
    (_Part("be an address or a network such as 192.0.2.1 or 192.0.2.0/24", network),),
    1,
    math.inf,
    "Write it like this, or leave out a source that may send from anywhere:\n"
    'WEBHOOK_NETWORKS = {"bank": ["192.0.2.0/24"]}',
)
_RATES = _SourceSetting(
    "WEBHOOK_RATES",
    "be a pair of numbers: how many events a second, and how many at once",
    (
        _Part(f"be a number from {RAREST} to {MOST:,}: events a second", a_second),
        _Part(f"be a whole number from 1 to {MOST:,}: events at once", at_once),
    ),
    2,
    2,
    "Write it like this, or leave out a source that may send any number:\n"
    'WEBHOOK_RATES = {"bank": (5, 20)}',
)


def source_named(name: str) -> Source | None:
    """What the settings say of a source; None if there is none of that name.

    Raises:
        SettingRefused: something of it cannot be used.
    """
    if not _KEYS.given().get(name):
        return None
    keys, networks, rate = (_read(one, name) for one in (_KEYS, _NETWORKS, _RATES))
    return Source(keys, networks, (rate[0], rate[1]) if rate else None)


def _read(setting: _SourceSetting, name: str) -> list[Any]:
    """What a setting says of a source; nothing if it does not name that."""
    given = setting.given()
    if name not in given:
        return []
    for mistake in setting.mistakes(name, given[name]):
        raise SettingRefused(mistake)
    return setting.read(given[name])


def mistakes_of_webhooks() -> Iterator[SettingMistake]:
    """Give each mistake in the three settings."""
    known = None
    for setting in (_KEYS, _NETWORKS, _RATES):
        try:
            given = setting.given()
        except SettingRefused as refused:
            yield SettingMistake(str(refused), setting.remedy)
            continue
        if setting is _KEYS:
            known = given.keys()
        for source, about in given.items():
            for mistake in setting.mistakes(source, about):
                yield SettingMistake(mistake, setting.remedy)
            if known is not None and source not in known:
                yield _of_nobody(setting, source)


def _of_nobody(setting: _SourceSetting, source: Any) -> SettingMistake:
    """A limit without effect; the source that it is meant for may send what it likes."""
    name = _shown(source)
    return SettingMistake(
        f"settings.{setting.name}[{name}] is of a source that does not exist; settings.{_KEYS.name}[{name}] makes it.",
        f"Correct the name, or add the keys of the source to {_KEYS.name}.",
    )


def _refuses(read: Callable[[Any], Any], value: Any) -> bool:
    try:
        read(value)
    except (ValueError, TypeError):  # a lazy number cannot be compared
        return True
    return False


def _is_name(source: Any) -> bool:
    if not isinstance(source, str) or not 0 < len(source) <= LONGEST_NAME:
        return False
    return source.isprintable() and "/" not in source and PREFIX not in source


def _shown(value: Any) -> str:
    """What is no secret; a key may stand in the wrong place."""
    said = reprlib.repr(value)
    return "…" if PREFIX in said else said


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
