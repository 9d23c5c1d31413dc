"""How a setting is declared, checked and refused; and the engine's own settings, from `settings.PROCESSION`.

A type carries a `Form`, which says what a value must be. The same type checks a variable of the environment and a
project's settings, and refuses both in the same words.
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
"""Where in a value something is; `KEY` stands for the name of an entry."""

DAY = 86_400  # seconds
KEY = "[key]"
VARIABLES = "PROCESSION_"
"""The context in which values are the texts of variables, whose names begin so."""
SECRET = "whsec_"  # noqa: S105  # the mark of one
"""How signing keys begin, which are not repeated wherever they stand."""
REFUSED, BOUNDED = "refused", "bounded"
"""The types of our own mistakes: a value alone, and one that another setting bounds."""
TOLD = (REFUSED, BOUNDED, "extra_forbidden", "invalid_key")
"""The types of mistakes whose own place is told, not the list or dictionary around them."""
OF_CONTAINERS = ("dict_type", "list_type", "model_type", "too_long", "too_short")


class SettingRefused(ProcessionError, ImproperlyConfigured):
    """A setting cannot be used.

    Args:
        mistakes: a line for each thing that is wrong with it.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__(mistakes[0])
        self.mistakes = mistakes


def refused(said: str) -> PydanticCustomError:
    """The mistake of which this is said."""
    return PydanticCustomError(REFUSED, "{said}", {"said": said})


def shown(value: Any) -> str:
    """A value as a refusal shows it; a key may stand in the wrong place."""
    said = reprlib.repr(value)
    return "…" if SECRET in said else said


def kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


@dataclass(frozen=True)
class Form:
    """What a value must be, as its refusal says it; it annotates the type that checks the value.

    Args:
        must: goes on after "must", such as "be 1 or 0".
        check: refuses a value of the type by giving nothing, or by raising.
        written: what the text of a variable must be, where its refusal says more than `must`.
        hides: the type of values that are secrets; a refusal does not repeat them.
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
            if not as_text and any(one["type"] in TOLD for one in found):
                raise
        except (ValueError, LookupError, OSError):
            pass
        must = (as_text and self.written) or self.must
        raise refused(f"must {must}{self._but(found[0], as_text)}.")

    def _but(self, found: Any, as_text: bool) -> str:
        """What it is instead: of what contains others its kind, or how many."""
        value = found["input"]
        if found["type"] in OF_CONTAINERS and not as_text:
            return f", not {found.get('ctx', {}).get('actual_length', kind(value))}"
        if isinstance(value, self.hides):
            return ""
        return f", not {kind(value) if self.hides else shown(value)}"


def number(least: float, most: float, of: str = "", what: str = "a number") -> Form:
    return Form(f"be {what} from {least:,} to {most:,}{of}", bounds=(least, most))


def whole(least: int, most: int, of: str = "") -> Form:
    return number(least, most, of, "a whole number")


DICTIONARY = Form("be a dictionary")


def mistakes(
    error: ValidationError, named: Callable[[Location], str], known: Iterable[str] = ()
) -> Iterator[str]:
    """Give a line for each mistake: what it is about, what that must be, and what it is.

    Args:
        named: how the person who made it calls what is at a location.
        known: the names that exist, for one that does not.
    """
    for found in error.errors(include_url=False):
        said = found["msg"]
        if found["type"] == BOUNDED:
            said += f", not {shown(found['input'])}."
        elif found["type"] != REFUSED:
            said = f"does not exist; there are {', '.join(known)}."
        yield f"{named(found['loc'])} {said}"


@dataclass
class Setting(Generic[T]):
    """A setting of a Django project.

    Args:
        name: its name.
        of: its type, in which each value has a form.
        default: what holds where it is not set.
        check: the system check that tells what is wrong with it.
        remedy: what to write there.
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

    def given(self) -> Any:
        given = getattr(settings, self.name, self.default)
        return self.default if given in self.unset else given

    def read(self, given: Any) -> T:
        """What is meant by what is given.

        Raises:
            SettingRefused: it cannot be used.
        """
        if given is self.default:
            return self.default
        try:
            return self._type.validate_python(given)
        except ValidationError as error:
            found = mistakes(error, self.place, self.known)
            raise SettingRefused(*found) from None

    def current(self) -> T:
        """What it says; checked once, and again when it has changed.

        Raises:
            SettingRefused: it cannot be used.
        """
        given, (last, content, value) = self.given(), self._last
        if given is not last or given != content:
            value = self.read(given)
            content = dict(given) if isinstance(given, Mapping) else given
            self._last = given, deepcopy(content), value
        return value

    def place(self, location: Location) -> str:
        """Where in a project's settings something is."""
        keys = (key for key in location if key != KEY)
        return f"settings.{self.name}" + "".join(f"[{shown(key)}]" for key in keys)


def text(value: Any) -> str:
    """A text in a project's settings, also one that is made when it is asked for (Django's `lazy`, `SimpleLazyObject`).

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str | Promise):
        raise ValueError("no text")
    return str(value)


def listed(value: Any) -> Any:
    """What stands between the commas of a text; a list as it is."""
    if not isinstance(value, str):
        return value
    return [word for part in value.split(",") if (word := part.strip())] or value


def by_commas(value: Any, info: ValidationInfo) -> Any:
    """What stands between the commas of a variable."""
    return listed(value) if info.context == VARIABLES else value


# Keys by which webhooks are signed after Standard Webhooks, in both directions

LEAST_KEY = 24  # bytes of a key, as Standard Webhooks has it
SIGNING_KEY_MUST = f"be {SECRET} and the base64 of {LEAST_KEY} bytes or more"
SIGNING_KEYS_MUST = f"{SIGNING_KEY_MUST}, or two of them with a comma between"


def signing_key(value: Any) -> str:
    """A key that can be used.

    Raises:
        ValueError: it is none.
    """
    written = text(value)
    if not written.startswith(SECRET):
        raise ValueError("no signing key")
    key = base64.b64decode(written.removeprefix(SECRET), validate=True)
    if len(key) < LEAST_KEY:
        raise ValueError("too short")
    return written


SigningKey = Annotated[str, BeforeValidator(signing_key)]


@cache
def log_once(mistake: str) -> None:
    """Logs a mistake in the settings once in this process, where each request would meet it again."""
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
    """Times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    DEFAULT_QUEUE: QueueName = "procession"
    """What RQ calls the queue `default`, so that a project's own queue of that name stays its own."""
    CODE_REVISION: CodeRevision = ""
    """Which code this is, as its repository says it; stored with each version of a definition that is first seen."""
    LEASE_SECONDS: Annotated[float, number(1, DAY)] = 10
    """How long claimed work is left alone before another worker may take it."""
    HEARTBEAT_SECONDS: Annotated[
        float, number(0.05, DAY // 2), Field(validate_default=True)
    ] = 3
    """How often a supervisor renews its workers' leases; at most half of the lease, so that one may come late."""
    SWEEP_SECONDS: Annotated[float, number(0.05, 3_600)] = 1
    """How often a supervisor looks for due work that no bell announced."""
    POLL_SECONDS: Annotated[float, number(0.01, 60)] = 0.2
    """How often a worker looks for work while Redis is away."""
    SLICE_SECONDS: Annotated[float, number(0.01, 3_600)] = 5
    """How long one bell keeps a worker busy before it rings again."""
    CALLS_IN_FLIGHT: Annotated[int, whole(1, 10_000)] = 500
    """How many calls that wait outside one supervisor's workers have in flight at once."""
    BLOCKED_SECONDS: Annotated[float, number(0.5, 3_600)] = 5
    """How long one `async def` may hold up all others before its worker is killed."""
    PATIENCE_SECONDS: Annotated[float, number(0, 365 * DAY)] = 60
    """How long an event may wait for its step or its process before people are told."""
    UNROUTED_SECONDS: Annotated[float, number(0, 3_650 * DAY)] = 30 * DAY
    """How long an event whose process is unknown is kept for it."""
    EVENT_ATTEMPTS: Annotated[int, whole(1, 1_000)] = 5
    """How often an event is tried before it is an incident."""
    EVENT_TIMEOUT: Annotated[float, number(0.1, DAY)] = 30
    """How long one event's transaction may take before its worker is killed."""
    BACKOFF_SECONDS: Annotated[float, number(0, 30 * DAY)] = 1
    """The first delay before another attempt; it doubles each time."""
    BACKOFF_CAP_SECONDS: Annotated[
        float, number(0, 30 * DAY), Field(validate_default=True)
    ] = 300
    """The longest delay between attempts; not below the first."""
    RETENTION_DAYS: Annotated[int, whole(0, 36_500)] = 0
    """For how many days after its end a process is kept whose definition does not say it; 0 for ever."""
    NOTICE_DAYS: Annotated[int, whole(1, 36_500)] = 90
    """For how many days what people were told is kept, with what became of it."""
    DUE_SOON_SECONDS: Annotated[float, number(1, 365 * DAY)] = 900
    """How long before its end a deadline counts as due soon."""
    TRANSITIONS_LIMIT: Annotated[int, whole(1, 1_000_000_000)] = 100_000
    """How many transitions one process may make; the next one is an incident."""

    @field_validator("HEARTBEAT_SECONDS")
    @classmethod
    def _renewed_in_time(cls, heartbeat: float, info: ValidationInfo) -> float:
        lease = info.data.get("LEASE_SECONDS", heartbeat * 2)
        if heartbeat > lease / 2:
            raise bounded("at most half of", "LEASE_SECONDS", info)
        return heartbeat

    @field_validator("BACKOFF_CAP_SECONDS")
    @classmethod
    def _not_below_the_first(cls, cap: float, info: ValidationInfo) -> float:
        first = info.data.get("BACKOFF_SECONDS", cap)
        if cap < first:
            raise bounded("at least", "BACKOFF_SECONDS", info)
        return cap


def bounded(how: str, other: str, info: ValidationInfo) -> PydanticCustomError:
    """The mistake of a number that the setting `other` bounds."""
    in_project = info.context != VARIABLES
    name = CONF.place((other,)) if in_project else f"{VARIABLES}{other}"
    said = f"must be {how} {name}, which is {info.data[other]:,.10g}"
    return PydanticCustomError(BOUNDED, "{said}", {"said": said})


CONF = Setting(
    "PROCESSION",
    Annotated[Conf, DICTIONARY],
    Conf(),
    "orchestrator.E007",
    "The page Settings of the documentation has each with its bounds.",
    known=Conf.model_fields,
)
conf = CONF.current
"""The settings in force; they are checked once, and again when settings.PROCESSION has changed."""
