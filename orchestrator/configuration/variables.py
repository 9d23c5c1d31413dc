"""The environment variables of the bundled project: type, bounds and default of each, read once by its settings.

An empty variable is as if it were not set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from orchestrator.configuration.conf import (
    KEY,
    VARIABLES,
    Conf,
    Form,
    Location,
    QueueName,
    SettingRefused,
    mistake_lines,
    split_at_commas,
)
from orchestrator.configuration.environment import split_database_address
from orchestrator.configuration.notice_settings import (
    MailAddress,
    Recipient,
    Recipients,
)
from orchestrator.configuration.sign_in_settings import (
    ClientId,
    ClientSecret,
    GroupsClaim,
    Issuer,
    ProviderName,
    SecondFactor,
    SsoGroups,
    check_sign_in,
)
from orchestrator.configuration.site_settings import MetricsToken, SiteAddress
from orchestrator.configuration.webhook_settings import (
    Networks,
    Rate,
    SourceName,
    WebhookSigningKeys,
    unknown_sources,
)

UNPREFIXED = {"DATABASE_URL", "REDIS_URL", "ORDER_LISTING_EXCHANGE_URL"}
LIMITS = ("WEBHOOK_NETWORKS", "WEBHOOK_RATE")


def is_redis_address(value: str) -> bool:
    from redis.connection import parse_url  # noqa: PLC0415  it takes long, and most set-ups name no server

    parts = parse_url(value)  # type: ignore[no-untyped-call]
    return not value.startswith("unix:") or "path" in parts


def is_mail_server(value: str) -> bool:
    parts = urlsplit(value)
    server = parts.scheme in MAIL_PORTS and parts.hostname and parts.port != 0
    more = parts.path not in ("", "/") or parts.query or parts.fragment
    return bool(server and not more)


MAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


def app(value: str) -> str:
    top, *parts = value.split(".")
    spec = find_spec(top)
    for place, part in enumerate(parts, 1):
        if spec is None or part[0].isupper():
            break  # the class of an AppConfig
        # No app may be imported before the settings.
        within = spec.submodule_search_locations
        name = ".".join([top, *parts[:place]])
        spec = PathFinder.find_spec(name, within) if within else None
    if spec is None:
        raise ValueError("cannot be imported")
    return value


def pattern(regex: str) -> StringConstraints:
    """Match a whole text. Classes of `regex` name ASCII: Unicode classes take 15 ms of each start to compile."""
    return StringConstraints(pattern=f"^(?:{regex})$", max_length=255)


List = BeforeValidator(split_at_commas), Field(min_length=1)
Flag = Annotated[bool, Form("be 1 or 0")]
App = Annotated[str, pattern(r"[0-9A-Za-z_]+(\.[0-9A-Za-z_]+)*"), AfterValidator(app)]
Apps = Annotated[list[App], *List, Form("list apps that can be imported")]
Queues = Annotated[
    list[QueueName], *List, Form("list names of up to 50 letters, digits, ., - and _")
]
Host = Annotated[str, pattern(r"\*|\.?[0-9A-Za-z_.-]+|\[[0-9a-fA-F:.]+\]")]
Hosts = Annotated[list[Host], *List, Form("list host names, without scheme and port")]
Origin = Annotated[str, pattern(r"https?://[0-9A-Za-z_.*:\[\]-]+")]
Origins = Annotated[
    list[Origin], *List, Form("list origins such as https://procession.example.org")
]
PathPrefix = Annotated[
    str,
    pattern(r"(/[0-9A-Za-z_][0-9A-Za-z_.~-]*)+"),
    Form("look like /procession, of letters, digits and _ . ~ -, without / at its end"),
]
DatabaseAddress = Annotated[
    str,
    Form(
        "look like postgresql://user:password@host:5432/name or sqlite:///folder/file",
        split_database_address,
        hides=str,
    ),
]
RedisAddress = Annotated[
    str,
    Form(
        "look like redis://user:password@host:6379/0, rediss://… or unix:///folder/socket",
        is_redis_address,
        hides=str,
    ),
]
MailServerAddress = Annotated[
    str,
    Form(
        "look like smtp://host:25, smtp+starttls://user:password@host:587 or smtps://…",
        is_mail_server,
        hides=str,
    ),
]
SecretKey = Annotated[
    str, Field(min_length=32), Form("have 32 characters or more", hides=str)
]
TimeZone = Annotated[str, Form("be a time zone such as Asia/Tokyo", ZoneInfo)]
Sender = Annotated[
    MailAddress, Form("be a mail address such as procession@example.org")
]
Language = Annotated[Literal["en", "ja"], Form("be en or ja")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"],
    BeforeValidator(str.lower),
    Form("be debug, info, warning, error or critical"),
]


class Variables(Conf):
    """The variables, each with the prefix PROCESSION_ except `UNPREFIXED`; with the engine's settings."""

    model_config = ConfigDict(strict=False)  # everything is text here

    DATA_DIR: Path | None = None
    """The folder of database, embedded Valkey, secrets and logs; `.procession` beside manage.py when None."""
    DATABASE_URL: DatabaseAddress = ""
    """SQLite in the data folder when empty."""
    REDIS_URL: RedisAddress = ""
    """The embedded Valkey when empty."""
    APPS: Apps = []
    """Apps besides the bundled ones."""
    DEMO: Flag = False
    """Whether the examples are installed."""
    QUEUES: Queues = []
    """The names of all queues besides the default one."""

    ALLOWED_HOSTS: Hosts = ["127.0.0.1", "localhost", "[::1]"]
    """The host names of the site."""
    PATH_PREFIX: PathPrefix = ""
    """The path of the site on its host; the site has the host to itself when empty."""
    TRUSTED_ORIGINS: Origins = []
    """The origins of forms besides the site itself."""
    HTTPS: Flag = False
    """Whether browsers must use HTTPS."""
    HSTS_PRELOAD: Flag = False
    """Whether browsers may have the domain in their own lists of HTTPS sites."""
    TRUSTED_PROXIES: Networks = []
    """The proxies that the web server believes about the origin of a request."""
    SECRET_KEY: SecretKey = ""
    """Django's; generated and kept in the data folder when empty."""
    TIME_ZONE: TimeZone = "UTC"
    """The time zone of the pages."""
    LANGUAGE: Language = "en"
    """The language of notices, and of pages for a browser that asks for none of them."""
    LOG_LEVEL: LogLevel = "info"
    """The least level that is logged."""
    DEBUG: Flag = False
    """Whether error pages show code and variables."""
    WEB: Flag = False
    """Whether this process serves requests; the web server sets it."""

    METRICS_TOKEN: MetricsToken = ""
    """The token with which programs read metrics; when empty only people who may see processes can read them."""

    SSO_ISSUER: Issuer = ""
    """The OpenID provider that signs people in; none when empty."""
    SSO_CLIENT_ID: ClientId = ""
    """The name under which the provider knows this site."""
    SSO_CLIENT_SECRET: ClientSecret = ""
    """The secret that the provider has given this site."""
    SSO_NAME: ProviderName = "single sign-on"
    """The name of the provider on the sign-in page."""
    SSO_GROUPS_CLAIM: GroupsClaim = "groups"
    """The claim that names the groups of a person."""
    SSO_GROUPS: SsoGroups = []
    """The groups of the provider, each with the group of Django that it gives."""
    SSO_ONLY: Flag = False
    """Whether the sign-in page has no form for a password."""
    SECOND_FACTOR: SecondFactor = ""
    """Whether people who sign in by password or link may have a second factor, or must have one; none when empty."""

    WEBHOOK_SECRET: dict[SourceName, WebhookSigningKeys] = {}
    """The signing keys of each webhook source."""
    WEBHOOK_NETWORKS: dict[SourceName, Networks] = {}
    """The networks that each source may send from; without an entry any."""
    WEBHOOK_RATE: dict[SourceName, Rate] = {}
    """How many events a second each source may send, and how many at once; without an entry any number."""
    SITE_URL: SiteAddress = ""
    """The public address of the console, for links in notices; they have none when empty."""
    SMTP_URL: MailServerAddress = ""
    """The mail server; the one of this machine, at port 25, when empty."""
    MAIL_FROM: Sender = "procession@localhost"
    """The sender of e-mail."""
    NOTICES: Recipients = {}
    """The recipients of notices, from PROCESSION_NOTICE_TO_<NAME> and the like."""
    ORDER_LISTING_EXCHANGE_URL: SiteAddress = ""
    """The address of the example's exchange; none when empty."""

    @model_validator(mode="after")
    def _limits_are_of_sources(self) -> Self:
        """Refuse a limit of an unknown source: with a misspelt name it would have no effect."""
        for family in LIMITS:
            for source in unknown_sources(self.WEBHOOK_SECRET, getattr(self, family)):
                secret = variable_name(("WEBHOOK_SECRET", source))
                raise SettingRefused(
                    f"{variable_name((family, source))} is of a source that does not exist; {secret} makes it."
                )
        return self

    @model_validator(mode="after")
    def _sign_in_is_complete(self) -> Self:
        """Refuse a provider without what it needs, and a variable without effect."""
        check_sign_in({name: getattr(self, name) for name in self.model_fields_set})
        return self

    @property
    def engine(self) -> dict[str, Any]:
        """The engine's settings that are set, as `settings.PROCESSION` has them."""
        return self.model_dump(include=set(Conf.model_fields), exclude_unset=True)

    @property
    def notices(self) -> dict[str, dict[str, Any]]:
        """The recipients of notices, as `settings.PROCESSION_NOTICES` has them."""
        about = self.NOTICES.items()
        return {name: one.model_dump(exclude_unset=True) for name, one in about}

    @property
    def mail_server(self) -> tuple[str, int, str, str, bool, bool]:
        """The mail server: host, port, user, password, whether to start TLS, and whether TLS is there at once."""
        parts = urlsplit(self.SMTP_URL or "smtp://localhost")
        return (
            parts.hostname or "",
            parts.port or MAIL_PORTS[parts.scheme],
            unquote(parts.username or ""),
            unquote(parts.password or ""),
            parts.scheme == "smtp+starttls",
            parts.scheme == "smtps",
        )


def variable_name(location: Location) -> str:
    """Return the name of the variable at a location of the model; of a whole recipient, words for all of them."""
    field, *rest = (part for part in location if isinstance(part, str) and part != KEY)
    if field in UNPREFIXED:
        return field
    if field != "NOTICES":
        return VARIABLES + "_".join([field, *rest]).upper()
    name, *part = rest
    one = f"{VARIABLES}NOTICE_{(part or ['to'])[0]}_{name}".upper()
    return one if part else f"The recipient of {one} and the like"


FAMILIES = {
    **{variable_name((name,)): (name, "") for name in ("WEBHOOK_SECRET", *LIMITS)},
    **{
        f"{VARIABLES}NOTICE_{part}".upper(): ("NOTICES", part)
        for part in Recipient.model_fields
        if part != "options"
    },
}
"""The beginnings of variables that end with _ and the name of a source or recipient; with their places in the model."""
FAMILY = re.compile(f"({'|'.join(FAMILIES)})(?:_(.*))?")
NAMES = {
    variable_name((name,)): name
    for name in Variables.model_fields.keys() - dict(FAMILIES.values()).keys()
}
"""The names of all other variables, and their fields."""


def read_variables() -> Variables:
    """Return the variables of this process.

    Raises:
        SettingRefused: a value has a mistake, or a name is misspelt and would have no effect.
    """
    for line in misspelling_lines(os.environ):
        raise SettingRefused(line)
    try:
        return Variables.model_validate(variable_texts(os.environ), context=VARIABLES)
    except ValidationError as error:
        raise SettingRefused(*mistake_lines(error, variable_name)) from None


def variable_texts(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables that are set, by the fields of the model.

    Raises:
        SettingRefused: a name lacks that of its source or recipient.
    """
    found: dict[str, Any] = {}
    for name, value in environ.items():
        if value and name in NAMES:
            found[NAMES[name]] = value
        elif value and (like := FAMILY.fullmatch(name)):
            family, owner = like.groups()
            if owner is None:
                raise SettingRefused(
                    f"{name} must have _ and another name after its own."
                )
            field, part = FAMILIES[family]
            into = found.setdefault(field, {})
            if part:
                into.setdefault(owner.lower(), {})[part] = value
            else:
                into[owner.lower()] = value
    return found


def misspelling_lines(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each unknown variable with a name similar to a known one."""
    known = {*NAMES, *FAMILIES}
    for name, value in environ.items():
        if not value or name in NAMES or FAMILY.fullmatch(name):
            continue
        if not name.upper().startswith(VARIABLES[:4]):
            continue
        for meant in get_close_matches(name.upper(), known, n=1, cutoff=0.9):
            yield f"{name} means nothing: write {meant}."
