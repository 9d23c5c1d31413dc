"""Variables of single sign-on and of the second factor, and the settings of django-allauth that they make."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, StringConstraints

from orchestrator.configuration.conf import Form, SettingRefused, split_at_commas
from orchestrator.text import PLAIN_NAME, is_plain_name

LONGEST_ISSUER = 200
"""Characters: the column of django-allauth with the issuer of an account has no room for more."""
LONGEST_GROUP = 150
"""Characters of the name of a group, as Django has it."""
ANYBODY = "*"
"""Stands in the place of a group of the provider for all people that it signs in."""
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
EXTRA = ("allauth", "jwt", "qrcode")
"""Modules that the extra `sso` brings."""
SINGLE_SIGN_ON_BACKEND = "orchestrator.sign_in.backends.SingleSignOnBackend"
SECOND_FACTOR_BACKEND = "orchestrator.sign_in.backends.SecondFactorBackend"
ALLAUTH_APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
]


def is_secure_address(address: str) -> bool:
    """Return whether an address is https, or http on this machine alone."""
    parts = urlsplit(address)  # raises ValueError where the port is no number
    loopback = parts.scheme == "http" and parts.hostname in LOOPBACK
    return (
        bool(parts.hostname)
        and parts.port != 0
        and (parts.scheme == "https" or loopback)
    )


def is_issuer(address: str) -> bool:
    """Return whether a text is the issuer of an OpenID provider."""
    parts = urlsplit(address)
    more = "?" in address or "#" in address or parts.username is not None
    plain = address.isprintable() and " " not in address
    return (
        plain
        and len(address) <= LONGEST_ISSUER
        and not more
        and is_secure_address(address)
    )


def split_group(entry: str) -> tuple[str, str]:
    """Return the group of the provider and the group of Django that one entry names; they may have one name."""
    theirs, equals, ours = (part.strip() for part in entry.rpartition("="))
    return (theirs, ours) if equals else (ours, ours)


def are_groups(entries: list[str]) -> bool:
    """Return whether each entry names a group of the provider and a group of Django."""
    pairs = [split_group(one) for one in entries]
    return all(
        theirs and ours and ours != ANYBODY and len(ours) <= LONGEST_GROUP
        for theirs, ours in pairs
    )


Issuer = Annotated[
    str,
    Form(
        "look like https://id.example.org/realms/example, with up to 200 characters and without user, ? and #; "
        "http:// only on 127.0.0.1, localhost and [::1]",
        is_issuer,
        hides=str,
    ),
]
ClientId = Annotated[
    str,
    StringConstraints(pattern=r"^[!-~]{1,191}$"),
    Form("have 1 to 191 letters, digits and signs of ASCII"),
]
ClientSecret = Annotated[
    str,
    StringConstraints(pattern=r"^[!-~]{1,255}$"),
    Form("have 1 to 255 letters, digits and signs of ASCII", hides=str),
]
ProviderName = Annotated[
    str,
    Field(max_length=40),
    Form(f"have up to 40 characters, {PLAIN_NAME}", is_plain_name),
]
GroupsClaim = Annotated[
    str,
    StringConstraints(pattern=r"^[!-~]{1,100}$"),
    Form("be the name of a claim, of 1 to 100 letters, digits and signs of ASCII"),
]
SsoGroups = Annotated[
    list[str],
    BeforeValidator(split_at_commas),
    Field(min_length=1),
    Form(
        "list groups such as ops-team=operators,ops-leads=administrators: the provider's name = the name in Django",
        are_groups,
    ),
]
SecondFactor = Annotated[
    Literal["", "optional", "required"], Form("be optional or required")
]
NEEDED = ("CLIENT_ID", "CLIENT_SECRET", "GROUPS")
"""The variables that PROCESSION_SSO_ISSUER needs besides."""


def check_sign_in(values: dict[str, Any]) -> None:
    """Check the variables together.

    Args:
        values: the variables that are set, by name without prefix.

    Raises:
        SettingRefused: one is missing, one has no effect, or the extra `sso` is not installed.
    """
    ours = sorted(name for name in values if name.startswith("SSO_"))
    if "SSO_ISSUER" not in values:
        for name in ours:
            raise SettingRefused(
                f"PROCESSION_{name} has no effect without PROCESSION_SSO_ISSUER: set both, or none."
            )
    else:
        for part in NEEDED:
            if f"SSO_{part}" not in values:
                raise SettingRefused(
                    f"PROCESSION_SSO_ISSUER needs PROCESSION_SSO_{part} too."
                )
    asks = next(
        (name for name in ("SSO_ISSUER", "SECOND_FACTOR") if name in values), ""
    )
    if asks and any(find_spec(name) is None for name in EXTRA):
        raise SettingRefused(
            f"PROCESSION_{asks} needs the packages of the extra sso: install them by python -m pip install "
            '"procession[sso]", or in a clone by pip install --require-hashes -r requirements-sso.lock.'
        )


def group_map(entries: list[str]) -> dict[str, list[str]]:
    """Return the groups of Django by the group of the provider that gives them."""
    found: dict[str, list[str]] = {}
    for theirs, ours in map(split_group, entries):
        found.setdefault(theirs, []).append(ours)
    return found


def provider_settings(
    issuer: str, client_id: str, secret: str, name: str
) -> dict[str, Any]:
    """Return the provider as `settings.SOCIALACCOUNT_PROVIDERS` has it.

    Its accounts are kept with the issuer, so that a subject of another issuer is another person.
    """
    known = issuer.rstrip("/")
    app = {
        "provider_id": known,
        "name": name,
        "client_id": client_id,
        "secret": secret,
        "settings": {
            "server_url": f"{known}/.well-known/openid-configuration",
            "oauth_pkce_enabled": True,
        },
    }
    return {"openid_connect": {"APPS": [app]}}
