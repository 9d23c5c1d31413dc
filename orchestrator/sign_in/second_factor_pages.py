"""The pages of the second factor: at a sign-in, and those where a person makes, renews and removes it."""

import base64
import time
from typing import Any

from allauth.account.stages import LoginStageController
from allauth.mfa.adapter import get_adapter
from allauth.mfa.totp.internal.auth import generate_totp_secret
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.decorators import login_not_required, login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from orchestrator.configuration.sign_in_settings import SINGLE_SIGN_ON_BACKEND
from orchestrator.sign_in.adapters import SIGNED_IN
from orchestrator.sign_in.second_factor import (
    NEW_SECRET,
    STAGE,
    accept_code,
    has_second_factor,
    make_second_factor,
    recovery_codes,
    remove_second_factor,
    renew_recovery_codes,
)

NEW_CODES = "procession_new_recovery_codes"
"""The key of a session that may show the recovery codes once; its value is where the person goes afterwards."""
RECENTLY = 900  # seconds after signing in, in which a second factor may be made


def code_page(request: HttpRequest, wrong: bool) -> HttpResponse:
    """Return the page that asks for a code."""
    return render(request, "registration/second_factor.html", {"wrong": wrong})


def setup_page(
    request: HttpRequest, user: AbstractBaseUser, wrong: bool
) -> HttpResponse:
    """Return the page that shows the secret of a new app, and asks for its first code."""
    secret = request.session.setdefault(NEW_SECRET, generate_totp_secret())
    adapter = get_adapter()
    picture = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    about = {
        "wrong": wrong,
        "secret": " ".join(secret[i : i + 4] for i in range(0, len(secret), 4)),
        "picture": base64.b64encode(picture.encode()).decode(),
        "required": settings.PROCESSION_SECOND_FACTOR == "required",
    }
    return render(request, "registration/new_second_factor.html", about)


def set_up(request: HttpRequest, user: AbstractBaseUser) -> bool:
    """Make the second factor whose secret the page has shown, if the code is right."""
    secret = request.session.get(NEW_SECRET)
    if not secret or not make_second_factor(user, secret, posted_code(request)):
        return False
    del request.session[NEW_SECRET]
    return True


def _accept(request: HttpRequest, user: AbstractBaseUser) -> bool:
    return accept_code(request, user, posted_code(request))


def posted_code(request: HttpRequest) -> str:
    """Return the code of a form, cut to a length that none has."""
    return request.POST.get("code", "")[:40]


@method_decorator([login_not_required, never_cache], name="dispatch")
class SecondFactorView(View):
    """Asks a person whose password or link was right for a code, or for a second factor to be made."""

    stage: Any
    user: Any

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.user.is_authenticated:
            return redirect(settings.LOGIN_REDIRECT_URL)
        self.stage = LoginStageController.enter(request, STAGE)
        self.user = self.stage.user() if self.stage else None
        if self.user is None:
            return redirect("sign-in")
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest, *, wrong: bool = False) -> HttpResponse:
        if has_second_factor(self.user):
            return code_page(request, wrong)
        return setup_page(request, self.user, wrong)

    def post(self, request: HttpRequest) -> HttpResponse:
        user = self.user
        had_one = has_second_factor(user)
        if not (_accept(request, user) if had_one else set_up(request, user)):
            return self.get(request, wrong=True)
        answer: HttpResponse = self.stage.exit()
        if had_one:
            return answer
        request.session[NEW_CODES] = answer["Location"]
        return redirect("recovery-codes")


@method_decorator([never_cache, login_required], name="dispatch")
class OwnSecondFactorView(View):
    """The page where a person makes a second factor, and by a code renews its recovery codes or removes it."""

    def get(self, request: HttpRequest, *, wrong: bool = False) -> HttpResponse:
        user: Any = request.user
        about: dict[str, Any] = {"wrong": wrong}
        if request.session[BACKEND_SESSION_KEY] == SINGLE_SIGN_ON_BACKEND:
            about["by_provider"] = settings.PROCESSION_SSO_NAME
        elif not has_second_factor(user):
            if _signed_in_recently(request):
                return setup_page(request, user, wrong)
            about["too_late"] = True
        else:
            about["removable"] = settings.PROCESSION_SECOND_FACTOR != "required"
            about["left"] = len(recovery_codes(user))
        return render(request, "registration/own_second_factor.html", about)

    def post(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        if request.session[BACKEND_SESSION_KEY] == SINGLE_SIGN_ON_BACKEND:
            return self.get(request)
        if not has_second_factor(user):
            if not _signed_in_recently(request) or not set_up(request, user):
                return self.get(request, wrong=True)
        elif not _accept(request, user):
            return self.get(request, wrong=True)
        elif (
            "remove" in request.POST and settings.PROCESSION_SECOND_FACTOR != "required"
        ):
            remove_second_factor(user)
            return redirect("own-second-factor")
        else:
            renew_recovery_codes(user)
        request.session[NEW_CODES] = ""
        return redirect("recovery-codes")


def _signed_in_recently(request: HttpRequest) -> bool:
    return bool(time.time() - request.session.get(SIGNED_IN, 0) < RECENTLY)


@require_http_methods(["GET"])  # and not HEAD, which would use up the only showing
@never_cache
@login_required
def recovery_codes_page(request: HttpRequest) -> HttpResponse:
    """Show new recovery codes once."""
    after = request.session.pop(NEW_CODES, None)
    if after is None:
        return redirect("own-second-factor")
    user: Any = request.user
    about = {"codes": recovery_codes(user), "after": after}
    return render(request, "registration/recovery_codes.html", about)
