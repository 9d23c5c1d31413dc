"""The second factor of people who sign in by password or link: a code of an app, or one of ten recovery codes.

django-allauth keeps both. A code is used up in the database, so that no second web server takes it again. Wrong codes
are counted by django-axes, as wrong passwords are: ten of both together, and the account has to wait.
"""

import hmac
import logging
import time
from typing import Any

from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from allauth.account.stages import LoginStage
from allauth.mfa.app_settings import TOTP_PERIOD
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt, encrypt
from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from orchestrator.sign_in import SINCE, one_at_a_time

security = logging.getLogger("orchestrator.security")

TOTP = Authenticator.Type.TOTP
RECOVERY_CODES = Authenticator.Type.RECOVERY_CODES
LAST_USED = "last_used_counter"
"""The key of the period, counted from 1970, of the newest code that was used: no older one is taken."""
DRIFT = (-1, 0, 1)
"""The clock of a phone may be one period off."""
STAGE = "second-factor"
BEGAN_WITH = "procession_began_with"
"""The key of the state of a sign-in with what the user had when it began."""
NEW_SECRET = "procession_new_secret"  # noqa: S105  # the key of a session


class SecondFactorStage(LoginStage):  # type: ignore[misc]  # allauth brings no types
    """Holds a sign-in back until the second factor is shown, or made where each person must have one."""

    key = STAGE
    urlname = "second-factor"

    def handle(self) -> tuple[HttpResponse | None, bool]:
        user = self.login.user
        if "sociallogin" in (self.login.signal_kwargs or {}):
            return None, True  # the provider asks for its own second factor
        if settings.PROCESSION_SECOND_FACTOR == "required" or has_second_factor(user):
            security.info("second factor: %a is asked for it", user.get_username())
            self.state[BEGAN_WITH] = _standing(user)
            return redirect(self.urlname), True
        return None, True

    def user(self) -> Any:
        """Return the user; None if the account, the password or the second factor has changed since the start."""
        user = self.login.user
        if user is None or not user.is_active:
            return None
        return user if self.state.get(BEGAN_WITH) == _standing(user) else None


def _standing(user: Any) -> list[object]:
    """Return the session hash of a user and the keys of the apps that make codes: a sign-in depends on both."""
    factors = Authenticator.objects.filter(user_id=user.pk, type=TOTP)
    return [user.get_session_auth_hash(), *factors.values_list("pk", flat=True)]


def begin_sign_in(
    request: HttpRequest, user: AbstractBaseUser, address: str
) -> HttpResponse:
    """Sign a user in, or lead to the page of the second factor first."""
    if request.user.is_authenticated:
        logout(request)
    request.session.pop(NEW_SECRET, None)  # of another person at this browser
    request.session[SINCE] = user.last_login and user.last_login.isoformat()
    answer: HttpResponse = perform_login(
        request, Login(user=user, redirect_url=address)
    )
    return answer


def has_second_factor(user: AbstractBaseUser) -> bool:
    """Whether a user has an app that makes codes."""
    return bool(Authenticator.objects.filter(user_id=user.pk, type=TOTP).exists())


def accept_code(request: HttpRequest, user: AbstractBaseUser, code: str) -> bool:
    """Use up a code of a user; return whether it was right and new.

    Raises:
        PermissionDenied: too many have been wrong; django-axes answers with 429.
    """
    credentials = {"username": user.get_username()}
    with one_at_a_time():
        if not AxesProxyHandler.is_allowed(request, credentials):
            request.axes_locked_out = True  # type: ignore[attr-defined]  # as its backend does
            raise PermissionDenied
        if _use_up(user, "".join(code.split())):
            return True
        security.warning("second factor: wrong code of %a", user.get_username())
        user_login_failed.send(__name__, credentials=credentials, request=request)
        return False


def _use_up(user: AbstractBaseUser, code: str) -> bool:
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(user_id=user.pk)
        for row in rows.filter(type__in=(TOTP, RECOVERY_CODES)).order_by("-type"):
            by_app = row.type == TOTP
            if _use_up_counter(row, code) if by_app else _use_up_recovery(row, code):
                row.record_usage()
                return True
    return False


def _use_up_counter(row: Authenticator, code: str) -> bool:
    counter = matching_counter(decrypt(row.data["secret"]), code)
    if counter <= row.data.get(LAST_USED, 0):
        return False
    row.data[LAST_USED] = counter
    row.save(update_fields=["data"])
    return True


def _use_up_recovery(row: Authenticator, code: str) -> bool:
    return bool(RecoveryCodes(row).validate_code(code))


def matching_counter(secret: str, code: str) -> int:
    """Return the period whose code this is; 0 for a wrong code."""
    now = int(time.time() // TOTP_PERIOD)
    for counter in (now + drift for drift in DRIFT):
        right = format_hotp_value(hotp_value(secret, counter))
        if hmac.compare_digest(right.encode(), code.encode(errors="replace")):
            return counter
    return 0


def make_second_factor(user: AbstractBaseUser, secret: str, code: str) -> bool:
    """Give a user an app and recovery codes, if a first code of the app is right; return whether it was."""
    counter = matching_counter(secret, "".join(code.split()))
    if not counter:
        return False
    data = {"secret": encrypt(secret), LAST_USED: counter}
    try:
        with transaction.atomic():
            Authenticator.objects.create(user_id=user.pk, type=TOTP, data=data)
            renew_recovery_codes(user)
    except IntegrityError:  # another tab was first
        return False
    security.info("second factor: made for %a", user.get_username())
    return True


def renew_recovery_codes(user: AbstractBaseUser) -> None:
    """Make ten recovery codes of a user, and void the earlier ones."""
    with transaction.atomic():
        Authenticator.objects.filter(user_id=user.pk, type=RECOVERY_CODES).delete()
        RecoveryCodes.activate(user)


def recovery_codes(user: AbstractBaseUser) -> list[str]:
    """Return the recovery codes that a user has not used."""
    row = Authenticator.objects.filter(user_id=user.pk, type=RECOVERY_CODES).first()
    found: list[Any] = RecoveryCodes(row).get_unused_codes() if row else []
    return found


def remove_second_factor(user: AbstractBaseUser) -> bool:
    """Take the app and the recovery codes of a user away; return whether there were any."""
    mine = Authenticator.objects.filter(user_id=user.pk)
    removed, _ = mine.filter(type__in=(TOTP, RECOVERY_CODES)).delete()
    if removed:
        security.info("second factor: removed of %a", user.get_username())
    return bool(removed)
