"""The environment variables of the bundled project: type, bounds and default of each, read once by its settings.

An empty variable is as if it were not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from orchestrator.conf import Conf, Form, QueueName, SettingRefused, mistakes
from orchestrator.environment import database_parts
from orchestrator.notice_settings import (
    DOTTED_PATH,
    MAIL_ADDRESSES,
    NAMES,
    TOPICS,
    WEB_ADDRESS,
    DottedPath,
    MailAddresses,
    Names,
    Recipient,
    Seconds,
    Topics,
    WebAddress,
    mail_address,
    wrong_ways,
)
from orchestrator.signing_keys import SIGNING_KEYS, SigningKey
from orchestrator.site_settings import (
    METRICS_TOKEN,
    SITE_ADDRESS,
    metrics_token,
    site_address,
)
from orchestrator.webhook_settings import (
    MOST,
    MOST_KEYS,
    RAREST,
    Network,
    Rate,
    network,
    written_rate,
)

PREFIX = "PROCESSION_"
NOTICES = ("TO", "URL", "SECRET", "CHANNEL", "ABOUT", "DEFINITIONS", "SECONDS")
"""What is said of each recipient of notices, in a variable each: PROCESSION_NOTICE_TO_<NAME> and so on."""
FAMILIES = {
    "WEBHOOK_SECRET",
    "WEBHOOK_NETWORKS",
    "WEBHOOK_RATE",
    *(f"NOTICE_{part}" for part in NOTICES),
}


def words(value: str) -> list[str]:
    """Return the comma separated parts of `value`, without the empty ones."""
    return [word for part in value.split(",") if (word := part.strip())]


def database_address(value: str) -> str:
    database_parts(value)
    return value


def redis_address(value: str) -> str:
    from redis.connection import parse_url  # noqa: PLC0415  it takes long, and most set-ups name no server

    parts = parse_url(value)  # type: ignore[no-untyped-call]
    if value.startswith("unix:") and not parts.get("path"):
        raise ValueError("no path")
    return value


def mail_server_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in MAIL_PORTS or not parts.hostname or parts.port == 0:
        raise ValueError("no mail server")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("more than a mail server")
    return value


MAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


class MailServer(NamedTuple):
    """Who sends e-mail, and how it is talked to."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool


def time_zone(value: str) -> str:
    try:
        return ZoneInfo(value).key
    except (KeyError, OSError):  # an unknown one, or a folder of them
        raise ValueError("no time zone") from None


def app(value: str) -> str:
    top, *parts = value.split(".")
    spec = find_spec(top)
    for place, part in enumerate(parts, 1):
        if spec is None or part[0].isupper():
            break  # a class, that of its configuration
        # Nothing is imported before the settings are there.
        within = spec.submodule_search_locations
        name = ".".join([top, *parts[:place]])
        spec = PathFinder.find_spec(name, within) if within else None
    if spec is None:
        raise ValueError("cannot be imported")
    return value


def matching(pattern: str) -> StringConstraints:
    """The whole text is like `pattern`, whose classes are ASCII's: Unicode's take 15 ms of each start to compile."""
    return StringConstraints(pattern=f"^(?:{pattern})$", max_length=255)


List = (BeforeValidator(words), Field(min_length=1))
Flag = Annotated[bool, Form("be 1 or 0")]
App = Annotated[str, matching(r"[0-9A-Za-z_]+(\.[0-9A-Za-z_]+)*"), AfterValidator(app)]
Apps = Annotated[list[App], *List, Form("list apps that can be imported")]
Queues = Annotated[
    list[QueueName],
    *List,
    Form("list names of up to 50 letters, digits, ., - and _"),
]
Host = Annotated[str, matching(r"\*|\.?[0-9A-Za-z_.-]+|\[[0-9a-fA-F:.]+\]")]
Hosts = Annotated[list[Host], *List, Form("list host names, without scheme and port")]
Origin = Annotated[str, matching(r"https?://[0-9A-Za-z_.*:\[\]-]+")]
Origins = Annotated[
    list[Origin],
    *List,
    Form("list origins such as https://procession.example.org"),
]
Networks = Annotated[list[Annotated[Network, BeforeValidator(network)]], *List]
NETWORKS = Form("list addresses and networks such as 192.0.2.1 or 192.0.2.0/24")
DatabaseAddress = Annotated[
    str,
    AfterValidator(database_address),
    Form(
        "look like postgresql://user:password@host:5432/name or sqlite:///folder/file",
        secret=True,
    ),
]
RedisAddress = Annotated[
    str,
    AfterValidator(redis_address),
    Form(
        "look like redis://user:password@host:6379/0, rediss://… or unix:///folder/socket",
        secret=True,
    ),
]
SiteAddress = Annotated[str, AfterValidator(site_address), SITE_ADDRESS]
MailServerAddress = Annotated[
    str,
    AfterValidator(mail_server_address),
    Form(
        "look like smtp://host:25, smtp+starttls://user:password@host:587 or smtps://…",
        secret=True,
    ),
]
SecretKey = Annotated[
    str, Field(min_length=32), Form("have 32 characters or more", secret=True)
]
MetricsToken = Annotated[str, AfterValidator(metrics_token), METRICS_TOKEN]
SigningKeys = Annotated[list[SigningKey], *List, Field(max_length=MOST_KEYS)]
RATE = Form(f"be like 5 or 5,20, from {RAREST} to {MOST:,}")
TimeZone = Annotated[
    str, AfterValidator(time_zone), Form("be a time zone such as Asia/Tokyo")
]
SENDER = Form("be a mail address such as procession@example.org")
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"],
    BeforeValidator(str.lower),
    Form("be debug, info, warning, error or critical"),
]


class Families(EnvSettingsSource):
    """The environment; a dictionary has its values from all variables that start with its name and `_`."""

    def explode_env_vars(
        self, field_name: str, field: FieldInfo, env_vars: Mapping[str, str | None]
    ) -> dict[str, Any]:
        prefix = f"{self.env_prefix}{field_name}_"
        return {
            name.removeprefix(prefix).lower(): value
            for name, value in env_vars.items()
            if name.startswith(prefix)
        }


class Variables(Conf, BaseSettings):
    """Each under its name after PROCESSION_, except where it has a name of its own; with the engine's settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        case_sensitive=True,
        env_ignore_empty=True,
        enable_decoding=False,  # lists are words with commas between them, not JSON
        strict=False,  # everything is text here
        validate_default=False,
    )

    DATA_DIR: Path | None = None
    """The folder of database, embedded Valkey, secrets and logs; `.procession` beside manage.py when None."""
    DATABASE_URL: DatabaseAddress = Field(default="", validation_alias="DATABASE_URL")
    """SQLite in the data folder when empty."""
    REDIS_URL: RedisAddress = Field(default="", validation_alias="REDIS_URL")
    """The embedded Valkey when empty."""
    APPS: Apps = []
    """Apps besides the bundled ones."""
    DEMO: Flag = False
    """Whether the examples are there."""
    QUEUES: Queues = []
    """The names of all queues besides the default one."""

    ALLOWED_HOSTS: Hosts = ["127.0.0.1", "localhost", "[::1]"]
    """The names that the site answers to."""
    TRUSTED_ORIGINS: Origins = []
    """Where forms may come from besides the site itself."""
    HTTPS: Flag = False
    """Whether HTTPS is insisted on."""
    TRUSTED_PROXIES: Annotated[Networks, NETWORKS] = []
    """Who is believed when it says where a request comes from."""
    SECRET_KEY: SecretKey = ""
    """Django's; made up and kept in the data folder when empty."""
    TIME_ZONE: TimeZone = "UTC"
    """The time zone of the pages."""
    LANGUAGE: Annotated[Literal["en", "ja"], Form("be en or ja")] = "en"
    """The language of notices, and of pages for whoever's browser asks for none of them."""
    LOG_LEVEL: LogLevel = "info"
    """The least that is logged."""
    DEBUG: Flag = False
    """Whether errors are shown with their surroundings."""
    WEB: Flag = False
    """Whether this process serves requests; the web server says so itself."""

    METRICS_TOKEN: MetricsToken = ""
    """What whoever asks for the metrics brings along; when empty only people who may look at processes get them."""

    WEBHOOK_SECRET: Annotated[dict[str, SigningKeys], SIGNING_KEYS] = {}
    """The signing keys of each webhook source."""
    WEBHOOK_NETWORKS: Annotated[dict[str, Networks], NETWORKS] = {}
    """Where each source may send from; without an entry from anywhere."""
    WEBHOOK_RATE: Annotated[
        dict[str, Annotated[Rate, BeforeValidator(written_rate)]], RATE
    ] = {}
    """How many messages a second each source may send, and how many at once; without an entry any number."""
    SITE_URL: SiteAddress = ""
    """Where people find the console, for the links in notices; these have none when empty."""
    SMTP_URL: MailServerAddress = ""
    """The mail server; the one of this machine, at port 25, when empty."""
    MAIL_FROM: Annotated[str, AfterValidator(mail_address), SENDER] = (
        "procession@localhost"
    )
    """Who e-mail comes from."""
    NOTICE_TO: Annotated[
        dict[str, Annotated[MailAddresses, BeforeValidator(words)]], MAIL_ADDRESSES
    ] = {}
    """The mail addresses of each recipient of notices that has some."""
    NOTICE_URL: Annotated[dict[str, WebAddress], WEB_ADDRESS] = {}
    """Where notices to each recipient are posted."""
    NOTICE_SECRET: Annotated[dict[str, SigningKeys], SIGNING_KEYS] = {}
    """The keys by which what is posted to a recipient is signed."""
    NOTICE_CHANNEL: Annotated[dict[str, DottedPath], DOTTED_PATH] = {}
    """The class of one's own by which a recipient is told."""
    NOTICE_ABOUT: Annotated[
        dict[str, Annotated[Topics, BeforeValidator(words)]], TOPICS
    ] = {}
    """What each recipient is told of; without an entry everything."""
    NOTICE_DEFINITIONS: Annotated[
        dict[str, Annotated[Names, BeforeValidator(words)]], NAMES
    ] = {}
    """The only definitions that each recipient is told of; without an entry all."""
    NOTICE_SECONDS: Annotated[
        dict[str, Seconds], Form("be a number from 1 to 86,400")
    ] = {}
    """How long after a notice each recipient gets the next one at the earliest; 300 without an entry."""
    ORDER_LISTING_EXCHANGE_URL: SiteAddress = Field(
        default="", validation_alias="ORDER_LISTING_EXCHANGE_URL"
    )
    """Where the example finds its exchange; none when empty."""

    @model_validator(mode="after")
    def _limits_are_of_sources(self) -> Self:
        """Make sure that no limit goes without effect because its source is spelled differently."""
        for family in ("WEBHOOK_NETWORKS", "WEBHOOK_RATE"):
            for source in getattr(self, family).keys() - self.WEBHOOK_SECRET.keys():
                secret = variable(("WEBHOOK_SECRET", source))
                raise SettingRefused(
                    f"{variable((family, source))} is of a source that does not exist; {secret} makes it."
                )
        return self

    @model_validator(mode="after")
    def _notices_have_a_way(self) -> Self:
        """Make sure that each recipient of notices is reached by one way, and what is posted is signed."""
        for name, about in self.notices.items():
            way = variable(("NOTICE_TO", name))
            for wrong in wrong_ways(Recipient.model_construct(**about)):
                raise SettingRefused(f"The recipient of {way} and the like {wrong}")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        *sources: PydanticBaseSettingsSource,
        **named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (Families(settings_cls),)

    @property
    def engine(self) -> dict[str, Any]:
        """Those of the engine's settings that are set, as `settings.PROCESSION` has them."""
        return self.model_dump(include=set(Conf.model_fields), exclude_unset=True)

    @property
    def notices(self) -> dict[str, dict[str, Any]]:
        """The recipients of notices, as `settings.PROCESSION_NOTICES` has them."""
        found: dict[str, dict[str, Any]] = {}
        for part in NOTICES:
            for name, value in getattr(self, f"NOTICE_{part}").items():
                found.setdefault(name, {})[part.lower()] = value
        return found

    @property
    def mail_server(self) -> MailServer:
        """Who sends e-mail."""
        parts = urlsplit(self.SMTP_URL or "smtp://localhost")
        return MailServer(
            host=parts.hostname or "",
            port=parts.port or MAIL_PORTS[parts.scheme],
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            starttls=parts.scheme == "smtp+starttls",
            tls=parts.scheme == "smtps",
        )


def read() -> Variables:
    """The variables as they are now.

    Raises:
        SettingRefused: one of them cannot be used, or would go without effect because its name is misspelt.
    """
    for line in misspelt(os.environ):
        raise SettingRefused(line)
    try:
        return Variables()
    except ValidationError as error:
        raise SettingRefused(next(mistakes(error, Variables, variable))) from None


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Give a line for each variable that nothing reads and whose name is nearly one that is read."""
    known = {variable((field,)) for field in Variables.model_fields}
    families = tuple(f"{PREFIX}{family}_" for family in FAMILIES)
    for name, value in environ.items():
        if not value or name in known or name.startswith(families):
            continue
        if not name.upper().startswith(PREFIX[:4]):
            continue
        for meant in get_close_matches(name.upper(), known, n=1, cutoff=0.9):
            yield f"{name} means nothing: write {meant}."


def variable(location: tuple[int | str, ...]) -> str:
    """The name of the variable at a location of the model."""
    field, *rest = (part for part in location if isinstance(part, str))
    if Variables.model_fields[field].validation_alias:
        return field
    family = rest[:1] if field in FAMILIES else []
    return PREFIX + "_".join([field, *family]).upper()
