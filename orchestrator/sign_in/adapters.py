"""Answers to the questions that django-allauth asks at a sign-in."""

import time
from datetime import datetime
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthError
from django.conf import settings
from django.contrib.auth import load_backend, login
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from requests import RequestException

from orchestrator.configuration.sign_in_settings import SINGLE_SIGN_ON_BACKEND
from orchestrator.sign_in import SINCE, link_backend, warn_of_failures
from orchestrator.sign_in.accounts import (
    mapped_groups,
    new_account,
    security,
    set_groups,
)
from orchestrator.sign_in.provider import ProviderSession
from orchestrator.sign_in.refusals import refused

SIGNED_IN = "procession_signed_in"
"""The key of a session with the time of signing in, in seconds since 1970."""
BY_PROVIDER = "procession_by_provider"
"""The attribute of a request whose user the provider signs in."""
NOT_NOW = ("server_error", "temporarily_unavailable")
"""The errors of a provider that is out of order for a while."""


class SignInAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth brings no types
    """Ends each sign-in in one way: a session with the right backend, and the page that was asked for."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(
        self, request: HttpRequest, user: User, **about: Any
    ) -> HttpResponse | None:
        by_provider = "sociallogin" in (about.get("signal_kwargs") or {})
        setattr(request, BY_PROVIDER, by_provider)
        answer: HttpResponse | None = super().pre_login(request, user, **about)
        return answer

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return refused(request, "inactive", user.get_username())

    def get_login_stages(self) -> list[str]:
        return ["orchestrator.sign_in.second_factor.SecondFactorStage"]

    def login(self, request: HttpRequest, user: User) -> None:
        by_provider = getattr(request, BY_PROVIDER, False)
        since = user.last_login
        if SINCE in request.session:  # a link has set the user's own
            said = request.session.pop(SINCE)
            since = datetime.fromisoformat(said) if said else None
        backend = SINGLE_SIGN_ON_BACKEND if by_provider else link_backend()
        # The backend's own user: the session must end with all that it depends on.
        login(request, load_backend(backend).get_user(user.pk) or user, backend=backend)
        request.session[SIGNED_IN] = time.time()
        warn_of_failures(request, user, since)
        if by_provider:
            security.info("single sign-on: %a has signed in", user.get_username())

    def post_login(
        self, request: HttpRequest, user: User, **about: Any
    ) -> HttpResponse:
        return redirect(about.get("redirect_url") or settings.LOGIN_REDIRECT_URL)


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth brings no types
    """Decides who of the provider's people comes in, and with which groups."""

    def is_open_for_signup(
        self, request: HttpRequest, sociallogin: SocialLogin
    ) -> bool:
        return False

    def get_requests_session(self) -> ProviderSession:
        return ProviderSession()

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        told = request.GET.get("error", "no state")
        reason = "cancelled" if error == AuthError.CANCELLED else "failed"
        if isinstance(exception, RequestException) or told in NOT_NOW:
            reason = "unreachable"
        detail = repr(exception) if exception else told
        raise ImmediateHttpResponse(refused(request, reason, detail))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Set the groups of a person, and make the account at the first sign-in.

        Raises:
            ImmediateHttpResponse: the person does not come in.
        """
        if sociallogin.nonce != sociallogin.state.get("nonce"):
            raise ImmediateHttpResponse(refused(request, "failed", "wrong nonce"))
        claims = sociallogin.claims
        try:
            with transaction.atomic():
                wanted = mapped_groups(claims)
                if wanted and not sociallogin.is_existing:
                    _make_account(sociallogin, claims)
                if sociallogin.is_existing:
                    set_groups(sociallogin.user, wanted)
        except IntegrityError as error:  # the same first sign-in twice at once
            raise ImmediateHttpResponse(refused(request, "failed", error)) from error
        if not wanted:
            raise ImmediateHttpResponse(
                refused(request, "no-group", sociallogin.account.uid)
            )


def _make_account(sociallogin: SocialLogin, claims: dict[str, Any]) -> None:
    sociallogin.user = sociallogin.account.user = new_account(claims)
    sociallogin.account.save()
