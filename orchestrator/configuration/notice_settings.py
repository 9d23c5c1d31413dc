"""The recipients of notices, from `settings.PROCESSION_NOTICES`, and the checks of their settings."""

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

from orchestrator.configuration.conf import (
    DAY,
    DICTIONARY,
    SIGNING_KEYS_MUST,
    Form,
    Setting,
    SettingRefused,
    SigningKey,
    bounds,
    refusal,
    split_at_commas,
)
from orchestrator.text import PLAIN_NAME, is_plain_name


class Topic(StrEnum):
    """The topics of notices."""

    ESCALATION = "escalation"
    FAILURE = "failure"
    DEADLINE = "deadline"
    QUEUE = "queue"


PROCESS_TOPICS = (Topic.ESCALATION, Topic.FAILURE, Topic.DEADLINE)


def check_mail_address(value: str) -> str:
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
Listed = BeforeValidator(split_at_commas), Field(min_length=1)
MailAddress = Annotated[str, AfterValidator(check_mail_address)]
MailAddresses = Annotated[
    list[MailAddress],
    *Listed,
    Form("list mail addresses such as operators@example.org"),
]
# The address of some receivers is a secret: a program that knows it may write to them.
WebAddress = Annotated[
    str,
    Form(
        "look like https://host:8000/path, without a user or password in it",
        is_web_address,
        hides=str,
    ),
]
NoticeSigningKeys = Annotated[
    list[SigningKey], *Listed, Field(max_length=2), Form(SIGNING_KEYS_MUST, hides=str)
]
DottedPath = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][0-9A-Za-z_]*(\.[A-Za-z_][0-9A-Za-z_]*)+$"),
    Form("be the path of a class, such as mysite.notices.Chat"),
]
Options = Annotated[
    dict[str, Any], Form("be a dictionary of arguments for the channel", hides=str)
]
Topics = Annotated[list[Topic], *Listed, Form(f"list some of {', '.join(Topic)}")]
DefinitionNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100)]],
    *Listed,
    Form("list names of definitions"),
]


class Recipient(BaseModel):
    """A recipient of notices: its address, its topics, and how often it gets one at most.

    It has exactly one of `to` (e-mail), `url` (a webhook, signed with `secret`) and `channel` (a class of the project).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: MailAddresses = []
    url: WebAddress = ""
    secret: NoticeSigningKeys = []
    """The keys that a webhook is signed with: two while one replaces the other."""
    channel: DottedPath = ""
    options: Options = {}
    about: Topics = list(Topic)
    definitions: DefinitionNames = []
    """The names of the definitions that it is told about; empty for all."""
    seconds: Annotated[float, bounds(1, DAY)] = 300
    """The least seconds between two notices; the next notice tells what happened meanwhile."""

    @model_validator(mode="after")
    def _is_reached_by_one_way(self) -> Self:
        """Check that it has one address, and a signing key for a URL."""
        wrong = []
        ways = [way for way in ("to", "url", "channel") if getattr(self, way)]
        if len(ways) != 1:
            had = " and ".join(ways) or "none"
            wrong.append(f"must have one of to, url and channel, not {had}.")
        if bool(self.url) != bool(self.secret):
            wrong.append("must have url and secret together: notices are signed.")
        if self.options and not self.channel:
            wrong.append("must have a channel for its options.")
        if wrong:
            raise refusal(" It ".join(wrong))
        return self

    def wants(self, topics: Iterable[str], definition: str) -> bool:
        """Return whether it wants a topic of a definition; outages of queues go to all who chose that topic."""
        found = set(self.about).intersection(topics)
        if not self.definitions or definition in self.definitions:
            return bool(found)
        return Topic.QUEUE in found

    @property
    def secrets(self) -> list[str]:
        """The texts in its settings that errors and logs must not repeat."""
        parts = urlsplit(self.url)
        password = str(getattr(settings, "EMAIL_HOST_PASSWORD", "")) if self.to else ""
        texts = _texts(list(self.options.values()))
        mine = (self.url, parts.path, parts.query, *self.secret, password, *texts)
        return [text for text in mine if text]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
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
    Form(f"have a name of up to 50 letters, {PLAIN_NAME}", is_plain_name, hides=object),
]
Recipients = Annotated[
    dict[RecipientName, Annotated[Recipient, DICTIONARY]], DICTIONARY
]
RECIPIENTS = Setting(
    "PROCESSION_NOTICES",
    Recipients,
    dict[str, Recipient](),
    "orchestrator.E012",
    "The page Settings of the documentation lists the settings of a recipient.",
    unset=(None, "", [], ()),
    known=Recipient.model_fields,
)
recipients = RECIPIENTS.current
"""The recipients by name; checked once, and again when settings.PROCESSION_NOTICES has changed."""


def is_notice_wanted(
    topics: Iterable[str], definition: str, named: Collection[str] = ()
) -> bool:
    """Return whether a recipient wants a notice. While the settings are wrong, one may want it later.

    Args:
        topics: the topics of the notice.
        definition: the name of its definition.
        named: recipients that get it whatever their topics.
    """
    try:
        known = recipients()
        wanted = (one.wants(topics, definition) for one in known.values())
        return any(name in known for name in named) or any(wanted)
    except SettingRefused:
        return True
