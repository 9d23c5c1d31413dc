"""Accounts of people whom an OpenID provider signs in: made at the first time, and their groups at each."""

import logging
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from orchestrator.configuration.sign_in_settings import ANYBODY
from orchestrator.text import STEERING

security = logging.getLogger("orchestrator.security")

LONGEST_NAME = 140
"""Characters of a user name without its number."""
LONGEST_ADDRESS = 254
NOT_IN_NAMES = re.compile(r"[^\w.@+-]")


def mapped_groups(claims: Mapping[str, Any]) -> set[str]:
    """Return the groups of Django that the claims of a person give; groups that do not exist are logged."""
    theirs = {ANYBODY, *_texts(claims.get(settings.PROCESSION_SSO_GROUPS_CLAIM))}
    wanted = {
        ours for one in theirs for ours in settings.PROCESSION_SSO_GROUPS.get(one, [])
    }
    found = set(Group.objects.filter(name__in=wanted).values_list("name", flat=True))
    if missing := sorted(wanted - found):
        security.warning(
            "single sign-on: PROCESSION_SSO_GROUPS names groups that do not exist: %a",
            missing,
        )
    return found


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [one for one in items if isinstance(one, str)]


def set_groups(user: User, wanted: set[str]) -> None:
    """Give a user these groups and take the other groups that a claim can give; groups given here alone stay."""
    given = {one for names in settings.PROCESSION_SSO_GROUPS.values() for one in names}
    mine = set(user.groups.filter(name__in=given).values_list("name", flat=True))
    user.groups.add(*Group.objects.filter(name__in=wanted - mine))
    user.groups.remove(*Group.objects.filter(name__in=mine - wanted))
    if mine != wanted:
        security.info(
            "single sign-on: groups of %a are now %a, before %a",
            user.get_username(),
            sorted(wanted),
            sorted(mine),
        )


def new_account(claims: Mapping[str, Any]) -> User:
    """Make the user of a person who signs in for the first time: without password, staff status and permissions."""
    user = User(
        username=free_name(claims),
        first_name=_text(claims, "given_name"),
        last_name=_text(claims, "family_name"),
        email=_verified_address(claims),
    )
    user.set_unusable_password()
    user.save()
    security.info("single sign-on: made the user %a", user.username)
    return user


def free_name(claims: Mapping[str, Any]) -> str:
    """Return a user name that no user has, after the name that the provider knows; case makes no other name."""
    address = _text(claims, "email").partition("@")[0]
    known = User.normalize_username(_text(claims, "preferred_username") or address)
    name = NOT_IN_NAMES.sub("", known)[:LONGEST_NAME] or "user"
    names = (name if number == 1 else f"{name}{number}" for number in count(1))
    return next(
        one for one in names if not User.objects.filter(username__iexact=one).exists()
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    text = STEERING.sub(" ", value) if isinstance(value, str) else ""
    return text.strip()[:150]


def _verified_address(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address that the provider has verified; "" for another one."""
    address = claims.get("email")
    if not isinstance(address, str) or claims.get("email_verified") is not True:
        return ""
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address if len(address) <= LONGEST_ADDRESS else ""
