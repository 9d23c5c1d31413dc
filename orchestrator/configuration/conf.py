"""Declaring, checking and refusing settings; and the engine's own settings, from `settings.PROCESSION`.

The type of a setting carries a `Form`, which says what a value must be. The same type checks a variable of the
environment and a setting of a project, and refuses both in the same words.
"""

from __future__ import annotations

import base64
import logging
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import with_info_wrap_validator_function

from orchestrator.exceptions import ProcessionError

log = logging.getLogger(__name__)

T = TypeVar("T")
Location = tuple[int | str, ...]
"""A place within a value; `KEY` stands for the name of an entry."""

DAY = 86_400  # seconds
KEY = "[key]"
VARIABLES = "PROCESSION_"
"""The prefix of environment variables, and the validation context of their texts."""
SECRET = "whsec_"  # noqa: S105  # the mark of one
"""The prefix of signing keys; no refusal repeats a text with it."""
REFUSED, BOUNDED = "refused", "bounded"
"""Error types of our own: a wrong value, and a number beyond the bound of another setting."""
WITH_OWN_PLACE = (REFUSED, BOUNDED, "extra_forbidden", "invalid_key")
"""Error types that name the place of the value itself, not of the list or dictionary around it."""
CONTAINER_MISTAKES = ("dict_type", "list_type", "model_type", "too_long", "too_short")


class SettingRefused(ProcessionError, ImproperlyConfigured):
    """A setting cannot be used.

    Args:
        mistakes: a line for each mistake.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__(mistakes[0])
        self.mistakes = mistakes


def refusal(said: str) -> PydanticCustomError:
    """Return the error with this message."""
    return PydanticCustomError(REFUSED, "{said}", {"said": said})


def safe_repr(value: Any) -> str:
    """Return a short repr of a value; "…" for a text with a signing key, which may stand in any place."""
    said = reprlib.repr(value)
    return "…" if SECRET in said else said


def type_of(value: Any) -> str:
    """Return the type of a value with its article; "None" for None."""
    return "None" if value is None else f"a {type(value).__name__}"


@dataclass(frozen=True)
class Form:
    """The words of a refusal, which say what a value must be; an annotation of the type that checks the value.

    Args:
        must: what follows "must", such as "be 1 or 0".
        check: refuses a value of the type: returns a false value, or raises.
        written: what the text of a variable must be, if that differs from `must`.
        hides: the type of secret values; a refusal does not repeat them.
        bounds: the least and the greatest number.
    """

    must: str
    check: Callable[[Any], object] | None = None
    written: str = ""
    hides: type | tuple[()] = ()
    bounds: tuple[float, float] | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema: Any = handler(source)
        if self.bounds:
            schema["ge"], schema["le"] = self.bounds
        return with_info_wrap_validator_function(self._checked, schema)

    def _checked(
        self, value: Any, inner: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        found: list[Any] = [{"type": REFUSED, "input": value}]
        as_text = info.context == VARIABLES and isinstance(value, str)
        try:
            usable = inner(value)
            if self.check is None or self.check(usable):
                return usable
        except ValidationError as error:
            found = error.errors(include_url=False)
            if not as_text and any(one["type"] in WITH_OWN_PLACE for one in found):
                raise
        except (ValueError, LookupError, OSError):
            pass
        must = (as_text and self.written) or self.must
        raise refusal(f"must {must}{self._but(found[0], as_text)}.")

    def _but(self, found: Any, as_text: bool) -> str:
        """Return the words for the refused value: its repr, or the type or length of a list or dictionary."""
        value = found["input"]
        if found["type"] in CONTAINER_MISTAKES and not as_text:
            return f", not {found.get('ctx', {}).get('actual_length', type_of(value))}"
        if isinstance(value, self.hides):
            return ""
        return f", not {type_of(value) if self.hides else safe_repr(value)}"


def bounds(least: float, most: float, of: str = "", what: str = "a number") -> Form:
    """Return the form of a number between two bounds."""
    return Form(f"be {what} from {least:,} to {most:,}{of}", bounds=(least, most))


def whole_bounds(least: int, most: int, of: str = "") -> Form:
    """Return the form of a whole number between two bounds."""
    return bounds(least, most, of, "a whole number")


DICTIONARY = Form("be a dictionary")


def mistake_lines(
    error: ValidationError, named: Callable[[Location], str], known: Iterable[str] = ()
) -> Iterator[str]:
    """Yield a line for each mistake: the setting, what it must be, and what it is.

    Args:
        named: returns the name of a location, as the person who set it knows it.
        known: the names that exist, to list for one that does not exist.
    """
    for found in error.errors(include_url=False):
        said = found["msg"]
        if found["type"] == BOUNDED:
            said += f", not {safe_repr(found['input'])}."
        elif found["type"] != REFUSED:
            said = f"does not exist; there are {', '.join(known)}."
        yield f"{named(found['loc'])} {said}"


@dataclass
class Setting(Generic[T]):
    """A setting of a Django project.

    Args:
        name: its name.
        of: its type, with a form for each value.
        default: its value where it is not set.
        check: the id of the system check that reports its mistakes.
        remedy: what to write in the settings.
        unset: values that mean the default.
        known: the names that a dictionary may have.
    """

    name: str
    of: Any
    default: T
    check: str
    remedy: str
    unset: tuple[Any, ...] = ()
    known: Iterable[str] = ()

    def __post_init__(self) -> None:
        self._type: TypeAdapter[T] = TypeAdapter(self.of)
        self._last: tuple[Any, Any, T] = self.default, self.default, self.default

    def raw_value(self) -> Any:
        """Return what the project's settings have; the default where it is not set."""
        given = getattr(settings, self.name, self.default)
        return self.default if given in self.unset else given

    def read(self, given: Any) -> T:
        """Return the checked value of `given`.

        Raises:
            SettingRefused: the value has a mistake.
        """
        if given is self.default:
            return self.default
        try:
            return self._type.validate_python(given)
        except ValidationError as error:
            found = mistake_lines(error, self.place, self.known)
            raise SettingRefused(*found) from None

    def current(self) -> T:
        """Return its value; it is checked once, and again when it has changed.

        Raises:
            SettingRefused: the value has a mistake.
        """
        given, (last, content, value) = self.raw_value(), self._last
        if given is not last or given != content:
            value = self.read(given)
            content = dict(given) if isinstance(given, Mapping) else given
            self._last = given, deepcopy(content), value
        return value

    def place(self, location: Location) -> str:
        """Return the name of a location in a project's settings."""
        keys = (key for key in location if key != KEY)
        return f"settings.{self.name}" + "".join(f"[{safe_repr(key)}]" for key in keys)


def require_text(value: Any) -> str:
    """Return a text of a project's settings; Django's lazy texts are evaluated.

    Raises:
        ValueError: the value is no text.
    """
    if not isinstance(value, str | Promise):
        raise ValueError("no text")
    return str(value)


def split_at_commas(value: Any) -> Any:
    """Split a text at its commas; return any other value as it is."""
    if not isinstance(value, str):
        return value
    return [word for part in value.split(",") if (word := part.strip())] or value


def split_variable(value: Any, info: ValidationInfo) -> Any:
    """Split the text of a variable at its commas; return a value of a project's settings as it is."""
    return split_at_commas(value) if info.context == VARIABLES else value


# Signing keys of webhooks (Standard Webhooks), received and sent

LEAST_KEY = 24  # bytes of a key, as Standard Webhooks has it
SIGNING_KEY_MUST = f"be {SECRET} and the base64 of {LEAST_KEY} bytes or more"
SIGNING_KEYS_MUST = f"{SIGNING_KEY_MUST}, or two of them with a comma between"


def signing_key(value: Any) -> str:
    """Return the text of a signing key.

    Raises:
        ValueError: the value is no signing key of sufficient length.
    """
    written = require_text(value)
    if not written.startswith(SECRET):
        raise ValueError("no signing key")
    key = base64.b64decode(written.removeprefix(SECRET), validate=True)
    if len(key) < LEAST_KEY:
        raise ValueError("too short")
    return written


SigningKey = Annotated[str, BeforeValidator(signing_key)]


@cache
def log_once(mistake: str) -> None:
    """Log a mistake in the settings once in this process, not at each request."""
    log.error("%s", mistake)


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
    """The engine's settings; times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    DEFAULT_QUEUE: QueueName = "procession"
    """RQ's name for the queue `default`: a project may have a queue of its own with that name."""
    CODE_REVISION: CodeRevision = ""
    """The revision of the running code; stored with each new version of a definition."""
    LEASE_SECONDS: Annotated[float, bounds(1, DAY)] = 10
    """How long claimed work belongs to its worker before another worker may take it."""
    HEARTBEAT_SECONDS: Annotated[
        float, bounds(0.05, DAY // 2), Field(validate_default=True)
    ] = 3
    """How often a supervisor renews its workers' leases; at most half of the lease, so that one may come late."""
    SWEEP_SECONDS: Annotated[float, bounds(0.05, 3_600)] = 1
    """How often a supervisor looks for due work that no bell announced."""
    POLL_SECONDS: Annotated[float, bounds(0.01, 60)] = 0.2
    """How often a worker looks for work while Redis is away."""
    SLICE_SECONDS: Annotated[float, bounds(0.01, 3_600)] = 5
    """How long a worker runs ready work for one bell before it rings again."""
    CALLS_IN_FLIGHT: Annotated[int, whole_bounds(1, 10_000)] = 500
    """How many calls that wait outside the workers of one supervisor have in flight at once."""
    BLOCKED_SECONDS: Annotated[float, bounds(0.5, 3_600)] = 5
    """How long one `async def` may hold up all others before its worker is killed."""
    PATIENCE_SECONDS: Annotated[float, bounds(0, 365 * DAY)] = 60
    """How long an event may wait for its step or its process before people are told."""
    UNROUTED_SECONDS: Annotated[float, bounds(0, 3_650 * DAY)] = 30 * DAY
    """How long an event waits for its unknown process."""
    EVENT_ATTEMPTS: Annotated[int, whole_bounds(1, 1_000)] = 5
    """How many attempts an event has before it becomes an incident."""
    EVENT_TIMEOUT: Annotated[float, bounds(0.1, DAY)] = 30
    """How long one event's transaction may take before its worker is killed."""
    BACKOFF_SECONDS: Annotated[float, bounds(0, 30 * DAY)] = 1
    """The first delay before another attempt; it doubles each time."""
    BACKOFF_CAP_SECONDS: Annotated[
        float, bounds(0, 30 * DAY), Field(validate_default=True)
    ] = 300
    """The longest delay between attempts; not below the first."""
    RETENTION_DAYS: Annotated[int, whole_bounds(0, 36_500)] = 0
    """The days that an ended process is kept if its definition does not say; 0 keeps it always."""
    NOTICE_DAYS: Annotated[int, whole_bounds(1, 36_500)] = 90
    """The days that notices are kept, with their outcomes."""
    DUE_SOON_SECONDS: Annotated[float, bounds(1, 365 * DAY)] = 900
    """How long before its end a deadline counts as due soon."""
    TRANSITIONS_LIMIT: Annotated[int, whole_bounds(1, 1_000_000_000)] = 100_000
    """How many transitions one process may make; the next one is an incident."""

    @field_validator("HEARTBEAT_SECONDS")
    @classmethod
    def _renewed_in_time(cls, heartbeat: float, info: ValidationInfo) -> float:
        lease = info.data.get("LEASE_SECONDS", heartbeat * 2)
        if heartbeat > lease / 2:
            raise bound_refusal("at most half of", "LEASE_SECONDS", info)
        return heartbeat

    @field_validator("BACKOFF_CAP_SECONDS")
    @classmethod
    def _not_below_the_first(cls, cap: float, info: ValidationInfo) -> float:
        first = info.data.get("BACKOFF_SECONDS", cap)
        if cap < first:
            raise bound_refusal("at least", "BACKOFF_SECONDS", info)
        return cap


def bound_refusal(how: str, other: str, info: ValidationInfo) -> PydanticCustomError:
    """Return the error of a number beyond the bound that the setting `other` sets."""
    in_project = info.context != VARIABLES
    name = CONF.place((other,)) if in_project else f"{VARIABLES}{other}"
    said = f"must be {how} {name}, which is {info.data[other]:,.10g}"
    return PydanticCustomError(BOUNDED, "{said}", {"said": said})


CONF = Setting(
    "PROCESSION",
    Annotated[Conf, DICTIONARY],
    Conf(),
    "orchestrator.E007",
    "The page Settings of the documentation lists each setting with its bounds.",
    known=Conf.model_fields,
)
conf = CONF.current
"""The settings in force; they are checked once, and again when settings.PROCESSION has changed."""
