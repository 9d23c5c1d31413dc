"""The engine's settings, from `settings.PROCESSION`, each with its default and bounds; and how a bad one is refused."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge, Le
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from orchestrator.exceptions import ProcessionError

log = logging.getLogger(__name__)

DAY = 86_400  # seconds
BY_ANOTHER = "bounded_by_another"
"""The type of the mistake of a number that another setting bounds."""


class SettingRefused(ProcessionError, ImproperlyConfigured):
    """A setting cannot be used."""


@dataclass(frozen=True)
class Form:
    """What a setting must do, as its refusal says it.

    Args:
        must: goes on after "must", such as "be 1 or 0".
        secret: the value is, or may contain, what nobody is to read in a log.
    """

    must: str
    secret: bool = False


class SettingMistake(NamedTuple):
    """What is wrong in a project's settings, and what to write there."""

    text: str
    remedy: str


def text(value: Any) -> str:
    """A text in a project's settings, also one that is made when it is asked for (Django's `lazy`, `SimpleLazyObject`).

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str | Promise):
        raise ValueError("no text")
    return str(value)


@cache
def log_once(mistake: str) -> None:
    """Logs a mistake in the settings once in this process, where each request would meet it again."""
    log.error("%s", mistake)


def bounded(what: str, other: str, bound: float) -> PydanticCustomError:
    """The mistake of a number that the setting `other` bounds."""
    about = {"what": what, "other": other, "bound": f"{bound:,.10g}"}
    return PydanticCustomError(BY_ANOTHER, "{what} {other}, which is {bound}", about)


QueueName = Annotated[
    str,
    Field(pattern=r"^[0-9A-Za-z_.-]{1,50}$"),
    Form("be up to 50 letters, digits, ., - and _"),
]


CodeRevision = Annotated[
    str,
    Field(pattern=r"^[0-9A-Za-z_./+@:-]{0,100}$"),
    Form("be up to 100 letters, digits and . _ - / + @ :"),
]


class Conf(BaseModel):
    """Times are in seconds."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )

    DEFAULT_QUEUE: QueueName = "procession"
    """What RQ calls the queue `default`, so that a project's own queue of that name stays its own."""
    CODE_REVISION: CodeRevision = ""
    """Which code this is, as its repository says it; stored with each version of a definition that is first seen."""
    LEASE_SECONDS: Annotated[float, Field(ge=1, le=DAY)] = 10
    """How long claimed work is left alone before another worker may take it."""
    HEARTBEAT_SECONDS: Annotated[
        float, Field(ge=0.05, le=DAY // 2, validate_default=True)
    ] = 3
    """How often a supervisor renews its workers' leases; at most half of the lease, so that one may come late."""
    SWEEP_SECONDS: Annotated[float, Field(ge=0.05, le=3_600)] = 1
    """How often a supervisor looks for due work that no bell announced."""
    POLL_SECONDS: Annotated[float, Field(ge=0.01, le=60)] = 0.2
    """How often a worker looks for work while Redis is away."""
    SLICE_SECONDS: Annotated[float, Field(ge=0.01, le=3_600)] = 5
    """How long one bell keeps a worker busy before it rings again."""
    CALLS_IN_FLIGHT: Annotated[int, Field(ge=1, le=10_000)] = 500
    """How many calls that wait outside one supervisor's workers have in flight at once."""
    BLOCKED_SECONDS: Annotated[float, Field(ge=0.5, le=3_600)] = 5
    """How long one `async def` may hold up all others before its worker is killed."""
    PATIENCE_SECONDS: Annotated[float, Field(ge=0, le=365 * DAY)] = 60
    """How long an event may wait for its step or its process before people are told."""
    UNROUTED_SECONDS: Annotated[float, Field(ge=0, le=3_650 * DAY)] = 30 * DAY
    """How long an event whose process is unknown is kept for it."""
    EVENT_ATTEMPTS: Annotated[int, Field(ge=1, le=1_000)] = 5
    """How often an event is tried before it is an incident."""
    EVENT_TIMEOUT: Annotated[float, Field(ge=0.1, le=DAY)] = 30
    """How long one event's transaction may take before its worker is killed."""
    BACKOFF_SECONDS: Annotated[float, Field(ge=0, le=30 * DAY)] = 1
    """The first delay before another attempt; it doubles each time."""
    BACKOFF_CAP_SECONDS: Annotated[
        float, Field(ge=0, le=30 * DAY, validate_default=True)
    ] = 300
    """The longest delay between attempts; not below the first."""
    RETENTION_DAYS: Annotated[int, Field(ge=0, le=36_500)] = 0
    """For how many days after its end a process is kept whose definition does not say it; 0 for ever."""
    NOTICE_DAYS: Annotated[int, Field(ge=1, le=36_500)] = 90
    """For how many days what people were told is kept, with what became of it."""
    DUE_SOON_SECONDS: Annotated[float, Field(ge=1, le=365 * DAY)] = 900
    """How long before its end a deadline counts as due soon."""
    TRANSITIONS_LIMIT: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100_000
    """How many transitions one process may make; the next one is an incident."""

    @field_validator("HEARTBEAT_SECONDS")
    @classmethod
    def _renewed_in_time(cls, heartbeat: float, info: ValidationInfo) -> float:
        lease = info.data.get("LEASE_SECONDS", heartbeat * 2)
        if heartbeat > lease / 2:
            raise bounded("be at most half of", "LEASE_SECONDS", lease)
        return heartbeat

    @field_validator("BACKOFF_CAP_SECONDS")
    @classmethod
    def _not_below_the_first(cls, cap: float, info: ValidationInfo) -> float:
        first = info.data.get("BACKOFF_SECONDS", cap)
        if cap < first:
            raise bounded("be at least", "BACKOFF_SECONDS", first)
        return cap


class _Read(NamedTuple):
    """What was read last: the dictionary, what was in it, and what it means."""

    given: Mapping[str, Any]
    content: Mapping[str, Any]
    conf: Conf


_NOTHING: Mapping[str, Any] = {}
_last = [_Read(_NOTHING, {}, Conf())]


def conf() -> Conf:
    """The settings in force; they are validated once, and again when settings.PROCESSION has changed.

    Raises:
        SettingRefused: settings.PROCESSION has a value that cannot be used, or a key that does not exist.
    """
    given, [last] = getattr(settings, "PROCESSION", _NOTHING), _last
    if given is not last.given or given != last.content:
        try:
            read = Conf.model_validate(given)
        except ValidationError as error:
            raise SettingRefused(next(mistakes(error, Conf, _key))) from None
        _last[0] = last = _Read(given, dict(given), read)
    return last.conf


def mistakes_of_conf() -> Iterator[str]:
    """Give a line for each mistake in settings.PROCESSION."""
    try:
        Conf.model_validate(getattr(settings, "PROCESSION", _NOTHING))
    except ValidationError as error:
        yield from mistakes(error, Conf, _key)


def _key(location: tuple[int | str, ...]) -> str:
    """Where in a project's settings a mistake is."""
    return "settings.PROCESSION" + "".join(f"[{key!r}]" for key in location[:1])


def mistakes(
    error: ValidationError,
    model: type[BaseModel],
    named: Callable[[tuple[int | str, ...]], str],
) -> Iterator[str]:
    """Give a line for each mistake that `model` found: what it is about, what that must be, and what it is.

    Args:
        named: how the person who made it calls what is at a location.
    """
    for found in error.errors(include_url=False):
        location, value = found["loc"], reprlib.repr(found["input"])
        field = model.model_fields.get(str(location[0])) if location else None
        if not location:
            yield f"{named(location)} must be a dictionary, not {value}."
        elif field is None:
            known = ", ".join(model.model_fields)
            yield f"{named(location)} does not exist; there are {known}."
        elif found["type"] == "dict_type":
            yield f"{named(location)} must have _ and another name after its own."
        else:
            asked = form(field)
            must, about = asked.must, found.get("ctx", {})
            if found["type"] == BY_ANOTHER:
                other = named((about["other"],))
                must = f"{about['what']} {other}, which is {about['bound']}"
            but = "" if asked.secret else f", not {value}"
            yield f"{named(location)} must {must}{but}."


def form(field: FieldInfo) -> Form:
    """What a field must do; of numbers, its bounds say it."""
    for about in field.metadata:
        if isinstance(about, Form):
            return about
    [least] = [about.ge for about in field.metadata if isinstance(about, Ge)]
    [most] = [about.le for about in field.metadata if isinstance(about, Le)]
    kind = "a whole number" if field.annotation is int else "a number"
    return Form(f"be {kind} from {least:,} to {most:,}")
