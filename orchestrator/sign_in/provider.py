"""The OpenID provider, as django-allauth asks it, and the two addresses of single sign-on.

A sign-in begins by GET: a form that leads to another host would be against `form-action 'self'`.
"""

import json
import time
from typing import Any

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base import AuthProcess, ProviderException
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import (
    OpenIDConnectOAuth2Adapter,
)
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from requests import RequestException, Session
from urllib3.exceptions import HTTPError

from orchestrator.configuration.sign_in_settings import is_secure_address
from orchestrator.sign_in.refusals import refused

TIMEOUT = 5  # seconds to connect, and between two pieces of an answer
WHOLE = 10  # seconds that an answer may take
LARGEST = 1_048_576  # bytes of an answer
LONGEST_SUBJECT = 191  # characters, as django-allauth stores them
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
MISTAKES = (
    OAuth2Error,
    ProviderException,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Errors of an answer that is not what OpenID Connect says."""


class ProviderSession(Session):
    """Asks the provider, with bounds for the time and the size of an answer; redirects are not followed."""

    def request(self, method: Any, url: Any, *args: Any, **more: Any) -> Any:
        more |= {"timeout": TIMEOUT, "allow_redirects": False, "stream": True}
        end, content = time.monotonic() + WHOLE, b""
        with super().request(method, url, *args, **more) as answer:
            try:
                while piece := answer.raw.read1(65_536, decode_content=True):
                    content += piece
                    if len(content) > LARGEST or time.monotonic() > end:
                        raise RequestException("the answer is too long or too slow")
            except HTTPError as error:
                raise RequestException(str(error)) from error
        answer._content = content
        return answer


class ProviderClient(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth brings no types
    """The code flow with the provider of the settings."""

    def __init__(self, request: HttpRequest) -> None:
        [app] = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
        super().__init__(request, app["provider_id"])

    @property
    def openid_config(self) -> dict[str, Any]:
        """The description that the provider gives of itself.

        Raises:
            OAuth2Error: it is of another issuer, or names an address that others can listen at.
        """
        found: dict[str, Any] = super().openid_config
        if found["issuer"].rstrip("/") != self.provider_id:
            raise OAuth2Error(f"the issuer calls itself {found['issuer']!r}")
        for name in ENDPOINTS:
            if name in found and not is_secure_address(found[name]):
                raise OAuth2Error(f"{name} is not https")
        return found

    def get_provider(self) -> Any:
        provider = super().get_provider()
        provider.get_oauth2_adapter = lambda request: self
        return provider

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("single-sign-on-callback"))

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **more: Any
    ) -> Any:
        """Return the sign-in of the subject of the ID token.

        Raises:
            OAuth2Error: there is no ID token, or what else is told is of another subject.
        """
        data = {"id_token": self._decode_id_token(app, more["response"]["id_token"])}
        subject = data["id_token"]["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise OAuth2Error("the subject is no text of 1 to 191 characters")
        if "userinfo_endpoint" in self.openid_config:
            data["userinfo"] = self._fetch_user_info(token.token)
            if data["userinfo"]["sub"] != subject:
                raise OAuth2Error("the user info is of another subject")
        if "\\u0000" in json.dumps(data):
            raise OAuth2Error("a claim has the character NUL")
        return self.get_provider().sociallogin_from_response(request, data)


@method_decorator([login_not_required, never_cache], name="dispatch")
class SingleSignOnView(RedirectURLMixin, View):
    """Sends a browser to the provider."""

    next_page = settings.LOGIN_REDIRECT_URL

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        client, nonce = ProviderClient(request), get_random_string(32)
        try:
            provider = client.get_provider()
            answer: HttpResponse = provider.redirect(
                request,
                AuthProcess.LOGIN,
                next_url=self.get_success_url(),
                scope=_scope(provider, client),
                auth_params={"nonce": nonce},
                nonce=nonce,
            )
        except RequestException as error:
            return refused(request, "unreachable", repr(error))
        except MISTAKES as error:
            return refused(request, "failed", repr(error))
        return answer


def _scope(provider: Any, client: ProviderClient) -> list[str]:
    """Return what the provider is asked for: groups too, where it has a scope for them."""
    more = client.openid_config.get("scopes_supported") or ()
    return [*provider.get_scope(), *({"groups"} & {*more})]


@login_not_required
@never_cache
def finish_single_sign_on(request: HttpRequest) -> HttpResponseBase:
    """Answer a browser that comes back from the provider."""
    try:
        view = OAuth2CallbackView.adapter_view(ProviderClient(request))
        answer: HttpResponseBase = view(request)
    except RequestException as error:
        return refused(request, "unreachable", repr(error))
    except MISTAKES as error:
        return refused(request, "failed", repr(error))
    return answer
