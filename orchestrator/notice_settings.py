"""Who is told of what, from `settings.PROCESSION_NOTICES`: each recipient by a name; and how a bad one is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from copy import deepcopy
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError as NotValid
from django.core.validators import validate_email
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from orchestrator.conf import DAY, Form, SettingRefused, mistakes
from orchestrator.signing_keys import SIGNING_KEYS, SigningKey


class Topic(StrEnum):
    """What people may be told of."""

    ESCALATION = "escalation"
    FAILURE = "failure"
    DEADLINE = "deadline"
    QUEUE = "queue"


OF_PROCESSES = (Topic.ESCALATION, Topic.FAILURE, Topic.DEADLINE)


def listed(value: Any) -> Any:
    """One text is a list of that alone."""
    return [value] if isinstance(value, str) else value


def mail_address(value: str) -> str:
    try:
        validate_email(value)
    except NotValid:
        raise ValueError("no mail address") from None
    return value


def web_address(value: str) -> str:
    parts = urlsplit(value)
    secure = parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in LOOPBACK
    )
    # Raises ValueError too where the port is no number.
    if not secure or not parts.hostname or parts.port == 0 or "@" in parts.netloc:
        raise ValueError("no address to send to")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("no address as it is sent")
    return value


LOOPBACK = ("127.0.0.1", "localhost", "::1")
MailAddresses = Annotated[
    list[Annotated[str, AfterValidator(mail_address)]], Field(min_length=1)
]
MAIL_ADDRESSES = Form("list mail addresses such as operators@example.org")
WebAddress = Annotated[str, AfterValidator(web_address)]
# Whoever knows the address of some receivers may write to them, so it is not repeated.
WEB_ADDRESS = Form(
    "look like https://host:8000/path, without a user or password in it", secret=True
)
DottedPath = Annotated[
    str, Field(pattern=r"^[A-Za-z_][0-9A-Za-z_]*(\.[A-Za-z_][0-9A-Za-z_]*)+$")
]
DOTTED_PATH = Form("be where a class is, such as mysite.notices.Chat")
Topics = Annotated[list[Topic], Field(min_length=1)]
TOPICS = Form(f"list some of {', '.join(Topic)}")
Names = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100)]], Field(min_length=1)
]
NAMES = Form("list names of definitions")
Seconds = Annotated[float, Field(ge=1, le=DAY)]


class Recipient(BaseModel):
    """Whom a notice goes to, by which way, about what, and how often at most.

    Exactly one of `to` (e-mail), `url` (a webhook, signed with `secret`) and `channel` (a class of the project's) is
    given.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    to: Annotated[MailAddresses, BeforeValidator(listed), MAIL_ADDRESSES] = []
    url: Annotated[WebAddress, WEB_ADDRESS] = ""
    secret: Annotated[
        list[SigningKey],
        BeforeValidator(listed),
        Field(min_length=1, max_length=2),
        SIGNING_KEYS,
    ] = []
    """The keys that a webhook is signed with: two while one replaces the other."""
    channel: Annotated[DottedPath, DOTTED_PATH] = ""
    options: Annotated[
        dict[str, Any],
        Form("be a dictionary of what the channel is made with", secret=True),
    ] = {}
    about: Annotated[Topics, BeforeValidator(listed), TOPICS] = list(Topic)
    definitions: Annotated[Names, BeforeValidator(listed), NAMES] = []
    """The names of the only definitions that it is about; empty for all."""
    seconds: Seconds = 300
    """At most one notice in so many seconds; what happens meanwhile is told in the next."""

    def wants(self, topics: Iterable[str], definition: str) -> bool:
        """Whether it is to be told; a queue belongs to no definition, and concerns everybody who wants to know."""
        found = set(self.about).intersection(topics)
        if not self.definitions or definition in self.definitions:
            return bool(found)
        return Topic.QUEUE in found

    @property
    def secrets(self) -> list[str]:
        """What must not be repeated anywhere."""
        parts = urlsplit(self.url)
        password = str(getattr(settings, "EMAIL_HOST_PASSWORD", "")) if self.to else ""
        texts = _texts(list(self.options.values()))
        mine = (self.url, parts.path, parts.query, *self.secret, password, *texts)
        return [text for text in mine if text]


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes | bytearray):
        yield value.decode(errors="replace")
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple | Set):
        for one in value:
            yield from _texts(one)


class _ReadRecipients(NamedTuple):
    """What was read last: the dictionary, what was in it, and what it means."""

    given: Mapping[str, Any]
    content: Mapping[str, Any]
    recipients: Mapping[str, Recipient]


_NOTHING: Mapping[str, Any] = {}
_last = [_ReadRecipients(_NOTHING, {}, {})]


def recipients() -> Mapping[str, Recipient]:
    """Who is told, by name; validated once, and again when settings.PROCESSION_NOTICES has changed.

    Raises:
        SettingRefused: settings.PROCESSION_NOTICES has something that cannot be used.
    """
    given, [last] = _given(), _last
    if given is not last.given or given != last.content:
        for mistake in mistakes_of_notices():
            raise SettingRefused(mistake)
        read = {name: Recipient(**about) for name, about in given.items()}
        _last[0] = last = _ReadRecipients(given, deepcopy(dict(given)), read)
    return last.recipients


def is_wanted(
    topics: Iterable[str], definition: str, named: Collection[str] = ()
) -> bool:
    """Whether anybody is to be told; where the settings are wrong somebody may, once they are right.

    Args:
        topics: what it is.
        definition: the name of the one that it is about.
        named: those who are told whatever else they want to be told of.
    """
    try:
        known = recipients()
        wanted = (one.wants(topics, definition) for one in known.values())
        return any(name in known for name in named) or any(wanted)
    except SettingRefused:
        return True


def mistakes_of_notices() -> Iterator[str]:
    """Give a line for each mistake in settings.PROCESSION_NOTICES."""
    given = _given()
    if not isinstance(given, Mapping):
        yield f"settings.PROCESSION_NOTICES must be a dictionary, not a {type(given).__name__}."
        return
    for name, about in given.items():
        yield from _mistakes_of(name, about)


def _mistakes_of(name: Any, about: Any) -> Iterator[str]:
    place = f"settings.PROCESSION_NOTICES[{name!r}]"
    if not (isinstance(name, str) and name.isprintable() and 0 < len(name) <= 50):
        yield f"{place} must have a name of up to 50 printable letters."
        return
    if not isinstance(about, Mapping):
        yield f"{place} must be a dictionary, not a {type(about).__name__}."
        return
    try:
        recipient = Recipient(**about)
    except (ValidationError, TypeError) as error:
        yield from _refusals(error, place)
        return
    yield from (f"{place} {wrong}" for wrong in wrong_ways(recipient))


def _refusals(error: ValidationError | TypeError, place: str) -> Iterator[str]:
    if isinstance(error, TypeError):
        yield f"{place} must have keys that are names."
        return

    def named(location: tuple[int | str, ...]) -> str:
        return place + "".join(f"[{key!r}]" for key in location[:1])

    yield from dict.fromkeys(mistakes(error, Recipient, named))


def wrong_ways(recipient: Recipient) -> Iterator[str]:
    """Give what is wrong with how a recipient is reached."""
    ways = [way for way in ("to", "url", "channel") if getattr(recipient, way)]
    if len(ways) != 1:
        had = " and ".join(ways) or "none"
        yield f"must have one of to, url and channel, not {had}."
    if bool(recipient.url) != bool(recipient.secret):
        yield "must have url and secret together: what is sent is signed."
    if recipient.options and not recipient.channel:
        yield "must have a channel that its options are for."


def _given() -> Any:
    return getattr(settings, "PROCESSION_NOTICES", None) or _NOTHING
