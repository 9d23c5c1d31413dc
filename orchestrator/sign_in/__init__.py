"""Signing in: by password, or by a signed link that works once and for a day.

The bundled project may have single sign-on and a second factor besides: the other modules here, which nothing imports
unless its settings ask for them. django-axes counts failures by address and by account, in a project that has it
installed, as the bundled one has.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model, login
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _
from django.views import View
from django.views.decorators.cache import never_cache

from orchestrator.configuration.sign_in_settings import SECOND_FACTOR_BACKEND
from orchestrator.exceptions import ProcessionError

LIFETIME = timedelta(hours=24)
SALT = "orchestrator.sign_in"
LINK = re.compile(r"(/sign-in/link/)[^/\s?]+")
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
SINCE = "procession_last_login"
"""The key of a session with the last sign-in before the one that has begun."""


class InvalidLink(ProcessionError):
    """This sign-in link has been used, is older than a day, or was not made here."""


def sign_in_path(user: AbstractBaseUser) -> str:
    """Return the path of a link that signs `user` in once, within `LIFETIME`.

    Any sign-in of the same user voids earlier links. Procession's logs hide the secret of the path.
    """
    seen = user.last_login.isoformat() if user.last_login else ""
    token = signing.dumps([str(user.pk), seen], salt=SALT)  # a key may be a UUID
    return reverse("sign-in-by-link", args=[token])


def mask_token(path: str) -> str:
    """Return a path with "-" in the place of a sign-in link's secret; any other path as it is."""
    return LINK.sub(r"\1-", path)


def hide_tokens(log: logging.Logger) -> None:
    """Hide the tokens of sign-in links in a web server's access log."""

    def mask(record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                mask_token(one) if isinstance(one, str) else one for one in record.args
            )
        return True

    log.addFilter(mask)


def redeem_link(token: str) -> AbstractBaseUser:
    """Return the user of a link, and use the link up.

    The link names the user's last sign-in. One statement compares and updates that, so one of many uses at once wins.

    Raises:
        InvalidLink: the link was used, has expired, or is not from here.
    """
    try:
        pk, seen = signing.loads(token, salt=SALT, max_age=LIFETIME)
    except signing.BadSignature:
        raise InvalidLink from None
    last_login = datetime.fromisoformat(seen) if seen else None
    users = get_user_model()._default_manager.filter(pk=pk)
    user = users.first()
    if user is None or not user.is_active:
        raise InvalidLink
    if not users.filter(last_login=last_login).update(last_login=timezone.now()):
        raise InvalidLink
    return user


def link_backend() -> str:
    """Return the authentication backend of sign-ins by link."""
    backends = settings.AUTHENTICATION_BACKENDS
    ours = (one for one in (SECOND_FACTOR_BACKEND, MODEL_BACKEND) if one in backends)
    return next(ours, backends[0])


def complete_sign_in(
    request: HttpRequest, user: AbstractBaseUser, address: str
) -> HttpResponse:
    """Sign in a user whose password or link was right, and redirect to `address`.

    In a project with a second factor its page comes first, for users who have one or need one.
    """
    if getattr(settings, "PROCESSION_SECOND_FACTOR", ""):
        from orchestrator.sign_in.second_factor import begin_sign_in  # noqa: PLC0415  needs django-allauth

        return begin_sign_in(request, user, address)
    since = user.last_login
    backend = getattr(user, "backend", None) or link_backend()
    login(request, user, backend=backend)  # type: ignore[arg-type]  # its type knows no other user model
    warn_of_failures(request, user, since)
    return redirect(address)


def warn_of_failures(
    request: HttpRequest, user: AbstractBaseUser, since: datetime | None
) -> None:
    """Show a user the failed sign-ins since the last successful one, if django-axes is installed."""
    if not apps.is_installed("axes"):
        return
    from axes.models import AccessFailureLog  # noqa: PLC0415  only where its app is installed

    failed = AccessFailureLog.objects.filter(username=user.get_username())
    if since is not None:
        failed = failed.filter(attempt_time__gt=since)
    last = failed.order_by("-attempt_time").first()
    if last is not None:
        about = {
            "number": failed.count(),
            "when": date_format(localtime(last.attempt_time), "DATETIME_FORMAT"),
            "address": last.ip_address or "?",
        }
        messages.warning(request, FAILURES % about, fail_silently=True)


FAILURES = _(
    "Failed attempts to sign in as you since the last time: %(number)s, the last on %(when)s from %(address)s. "
    "If that was not you, tell an administrator."
)


def throttled(request: HttpRequest, *about: object) -> HttpResponse:
    """Return the answer to an address or account with too many failures, whatever the password was."""
    answer = render(request, "registration/throttled.html", status=429)
    answer["Retry-After"] = str(round(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer


_turn = Lock()
"""Passwords and codes are compared one at a time: of many at once, none would see the failures of the others."""


TURN_SECONDS = 10.0
"""How long a request waits for its turn: the one before it may wait for a silent database."""


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other password or code is being compared, but no longer than `TURN_SECONDS`."""
    mine = _turn.acquire(timeout=TURN_SECONDS)
    try:
        yield
    finally:
        if mine:
            _turn.release()


class SignInView(LoginView):
    """The form for user name and password, and the button of single sign-on."""

    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        about = {
            "provider": getattr(settings, "PROCESSION_SSO_NAME", ""),
            "takes_passwords": not getattr(settings, "PROCESSION_SSO_ONLY", False),
        }
        return super().get_context_data(**kwargs) | about

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if getattr(settings, "PROCESSION_SSO_ONLY", False):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        with one_at_a_time():
            return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        address = self.get_success_url()
        return complete_sign_in(self.request, form.get_user(), address)


@method_decorator([login_not_required, never_cache], name="dispatch")
class SignInByLinkView(View):
    """Signs in the user of an unused link. A HEAD, as of a preview, does not use it up."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest, token: str, **kwargs: Any) -> HttpResponse:
        # Django's log of a refusal, and the stored sign-ins, have the path as it is here.
        request.path = request.path_info = mask_token(request.path)
        request.META["PATH_INFO"] = request.path
        try:
            user = redeem_link(token)
        except InvalidLink as refused:
            page = "registration/link_refused.html"
            return render(request, page, {"refused": refused}, status=403)
        return complete_sign_in(request, user, settings.LOGIN_REDIRECT_URL)
