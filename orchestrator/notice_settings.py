"""Who is told of what, from `settings.PROCESSION_NOTICES`: each recipient by a name; and how a bad one is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from enum import StrEnum
from typing import Annotated, Any, Self
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
    model_validator,
)

from orchestrator.conf import (
    DAY,
    DICTIONARY,
    SIGNING_KEYS_MUST,
    Form,
    Setting,
    SettingRefused,
    SigningKey,
    listed,
    number,
    refused,
)


class Topic(StrEnum):
    """What people may be told of."""

    ESCALATION = "escalation"
    FAILURE = "failure"
    DEADLINE = "deadline"
    QUEUE = "queue"


OF_PROCESSES = (Topic.ESCALATION, Topic.FAILURE, Topic.DEADLINE)


def mail_address(value: str) -> str:
    try:
        validate_email(value)
    except NotValid:
        raise ValueError("no mail address") from None
    return value


def is_web_address(value: str) -> bool:
    parts = urlsplit(value)  # raises ValueError where the port is no number
    secure = parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in LOOPBACK
    )
    address = parts.hostname and parts.port != 0 and "@" not in parts.netloc
    as_sent = value.isascii() and value.isprintable() and " " not in value
    return bool(secure and address and as_sent)


LOOPBACK = ("127.0.0.1", "localhost", "::1")
Listed = BeforeValidator(listed), Field(min_length=1)
MailAddress = Annotated[str, AfterValidator(mail_address)]
MailAddresses = Annotated[
    list[MailAddress],
    *Listed,
    Form("list mail addresses such as operators@example.org"),
]
# Whoever knows the address of some receivers may write to them, so it is not repeated.
WebAddress = Annotated[
    str,
    Form(
        "look like https://host:8000/path, without a user or password in it",
        is_web_address,
        hides=str,
    ),
]
SigningKeys = Annotated[
    list[SigningKey], *Listed, Field(max_length=2), Form(SIGNING_KEYS_MUST, hides=str)
]
DottedPath = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][0-9A-Za-z_]*(\.[A-Za-z_][0-9A-Za-z_]*)+$"),
    Form("be where a class is, such as mysite.notices.Chat"),
]
Options = Annotated[
    dict[str, Any],
    Form("be a dictionary of what the channel is made with", hides=str),
]
Topics = Annotated[list[Topic], *Listed, Form(f"list some of {', '.join(Topic)}")]
Names = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100)]],
    *Listed,
    Form("list names of definitions"),
]


class Recipient(BaseModel):
    """Whom a notice goes to, by which way, about what, and how often at most.

    Exactly one of `to` (e-mail), `url` (a webhook, signed with `secret`) and `channel` (a class of the project's) is
    given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: MailAddresses = []
    url: WebAddress = ""
    secret: SigningKeys = []
    """The keys that a webhook is signed with: two while one replaces the other."""
    channel: DottedPath = ""
    options: Options = {}
    about: Topics = list(Topic)
    definitions: Names = []
    """The names of the only definitions that it is about; empty for all."""
    seconds: Annotated[float, number(1, DAY)] = 300
    """At most one notice in so many seconds; what happens meanwhile is told in the next."""

    @model_validator(mode="after")
    def _is_reached_by_one_way(self) -> Self:
        """Make sure that it is reached by one way, and what is posted is signed."""
        wrong = []
        ways = [way for way in ("to", "url", "channel") if getattr(self, way)]
        if len(ways) != 1:
            had = " and ".join(ways) or "none"
            wrong.append(f"must have one of to, url and channel, not {had}.")
        if bool(self.url) != bool(self.secret):
            wrong.append("must have url and secret together: what is sent is signed.")
        if self.options and not self.channel:
            wrong.append("must have a channel that its options are for.")
        if wrong:
            raise refused(" It ".join(wrong))
        return self

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


RecipientName = Annotated[
    str,
    Field(min_length=1, max_length=50),
    Form("have a name of up to 50 printable letters", str.isprintable, hides=object),
]
Recipients = Annotated[
    dict[RecipientName, Annotated[Recipient, DICTIONARY]], DICTIONARY
]
RECIPIENTS = Setting(
    "PROCESSION_NOTICES",
    Recipients,
    dict[str, Recipient](),
    "orchestrator.E012",
    "The page Settings of the documentation has what can be said of a recipient.",
    unset=(None, "", [], ()),
    known=Recipient.model_fields,
)
recipients = RECIPIENTS.current
"""Who is told, by name; checked once, and again when settings.PROCESSION_NOTICES has changed."""


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
