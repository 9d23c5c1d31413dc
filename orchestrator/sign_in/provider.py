"""The OpenID provider, as django-allauth asks it, and the two addresses of single sign-on.

A sign-in begins by GET: a form that leads to another host would be against `form-action 'self'`.
"""

import json
import os
import re
import socket
import time
from contextlib import ExitStack, suppress
from threading import BoundedSemaphore, Timer
from typing import Any
from urllib.parse import urlsplit

import jwt
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.base import AuthProcess, ProviderException
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import (
    OpenIDConnectOAuth2Adapter,
)
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import RedirectURLMixin
from django.db import DataError, connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from requests import RequestException, Session
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from orchestrator.configuration.sign_in_settings import LOOPBACK, is_secure_address
from orchestrator.definition.codec import check_json
from orchestrator.exceptions import InvalidMessage
from orchestrator.sign_in.refusals import refused

TIMEOUT = 5  # seconds to connect, and between two pieces of an answer
WHOLE = 10  # seconds that an answer may take
LARGEST = 1_048_576  # bytes of an answer
AT_ONCE = 4  # requests that wait for the provider
KEPT = 300  # seconds for which the provider's description of itself is kept
LEEWAY = 60  # seconds by which the clock of the provider may be wrong
LONGEST_SUBJECT = 191  # characters, as django-allauth stores them
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
CHECKS: Any = {
    "verify_signature": False,
    **dict.fromkeys(("verify_exp", "verify_nbf", "verify_aud", "verify_iss"), True),
    "require": ["exp", "iss", "aud", "sub"],
}
"""The checks of an ID token."""
LISTS = ("scopes_supported", "token_endpoint_auth_methods_supported")
MISTAKES = (
    OAuth2Error,
    ProviderException,
    InvalidMessage,
    AttributeError,
    DataError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors of an answer that is not what OpenID Connect says."""

_waiting = BoundedSemaphore(AT_ONCE)
_descriptions: dict[str, tuple[float, dict[str, Any]]] = {}
"""The descriptions by issuer, each with the time until which it is kept."""


class ProviderSession(Session):
    """Asks the provider, with bounds for the time and the size of an answer; redirects are not followed.

    The environment may name proxies, but none for this machine, and certificates. No request waits with a connection
    to the database.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True

    def request(self, method: Any, url: Any, *args: Any, **more: Any) -> Any:
        """Return an answer that is an object of JSON; of the token endpoint, one with an access token.

        Raises:
            RequestException: the provider does not answer, or says that it cannot.
            OAuth2Error: it answers something else, or has refused a code.
            InvalidMessage: a value of the answer cannot be stored.
        """
        here = urlsplit(url).hostname in LOOPBACK
        more |= {"timeout": TIMEOUT, "allow_redirects": False, "stream": True}
        more["proxies"] = {} if here else get_environ_proxies(url)
        if not _waiting.acquire(blocking=False):
            raise RequestException("too many requests wait for the provider")
        with ExitStack() as at_end:
            at_end.callback(_waiting.release)
            _give_connections_back()
            bounded = _BoundedAdapter(time.monotonic() + WHOLE, at_end)
            self.mount("http://", bounded)
            self.mount("https://", bounded)
            answer = at_end.enter_context(super().request(method, url, *args, **more))
            content = _content(answer.raw, bounded.end)
        found = _checked_answer(method, answer.status_code, content)
        answer._content = content
        vars(answer)["json"] = lambda: found
        answer.headers["Content-Type"] = "application/json"
        return answer


def _give_connections_back() -> None:
    for one in connections.all(initialized_only=True):
        if not one.in_atomic_block:
            one.close()


def _content(raw: Any, end: float) -> bytes:
    content, piece = b"", b"more"
    try:
        while piece:
            content += (piece := raw.read1(65_536, decode_content=True))
            if len(content) > LARGEST or time.monotonic() >= end:
                raise RequestException("the answer is too long or too slow")
    except HTTPError as error:
        raise RequestException(str(error)) from error
    return content


def _checked_answer(method: str, status: int, content: bytes) -> dict[str, Any]:
    if status != 200:
        why = re.search(rb'"error"\s*:\s*"(\w{1,40})"', content)
        by_us = method == "POST" and 400 <= status < 500 and status != 429
        kind = OAuth2Error if by_us else RequestException
        raise kind(f"it answers with {status} {why[1].decode() if why else ''}")
    found: Any = json.loads(content)
    check_json(found)
    if not isinstance(found, dict):
        raise OAuth2Error("the answer is no object")
    if method == "POST" and not re.fullmatch("[!-~]+", found["access_token"]):
        raise OAuth2Error("the access token is no text of ASCII")
    return found


class _BoundedAdapter(HTTPAdapter):
    """Cuts each connection off when the time is over, whatever trickles in."""

    def __init__(self, end: float, at_end: ExitStack) -> None:
        super().__init__()
        self.end, self.at_end = end, at_end

    def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **more)
        about = {"end": self.end, "at_end": self.at_end}
        pool.ConnectionCls = type("Bounded", (_Bounded, pool.ConnectionCls), about)
        return pool


class _Bounded(HTTPConnection):
    end: float
    at_end: ExitStack

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        twin = made.dup()  # TLS takes the first one over
        timer = Timer(max(0, self.end - time.monotonic()), _cut, [twin])
        timer.daemon = True
        timer.start()
        self.at_end.callback(twin.close)
        self.at_end.callback(timer.cancel)
        return made


def _cut(twin: socket.socket) -> None:
    with suppress(OSError):  # it has ended meanwhile
        twin.shutdown(socket.SHUT_RDWR)


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
        until, found = _descriptions.get(self.provider_id, (0.0, {}))
        if time.monotonic() >= until:
            found = super().openid_config
            self._check(found)
            _descriptions[self.provider_id] = time.monotonic() + KEPT, found
        return found

    def _check(self, found: dict[str, Any]) -> None:
        if found["issuer"].rstrip("/") != self.provider_id:
            raise OAuth2Error(f"the issuer calls itself {found['issuer']!r}")
        for name in ENDPOINTS:
            if name in found and not is_secure_address(found[name]):
                raise OAuth2Error(f"{name} is not https")
        for name in LISTS:
            found[name] = [*(found.get(name) or ())]

    def get_provider(self) -> Any:
        provider = super().get_provider()
        provider.get_oauth2_adapter = lambda request: self
        return provider

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("single-sign-on-callback"))

    def parse_token(self, data: dict[str, Any]) -> SocialToken:
        return SocialToken(token=data["access_token"])

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **more: Any
    ) -> Any:
        """Return the sign-in of the subject of the ID token, with its claims, of which nothing else is stored.

        Raises:
            OAuth2Error: there is no ID token, or what else is told is of another subject.
        """
        claims = self._decode_id_token(app, more["response"]["id_token"])
        subject, told = claims["sub"], {}
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise OAuth2Error("the subject is no text of 1 to 191 characters")
        if "userinfo_endpoint" in self.openid_config:
            told = self._fetch_user_info(token.token)
            if told["sub"] != subject:
                raise OAuth2Error("the user info is of another subject")
        stored = {"sub": subject}
        found = self.get_provider().sociallogin_from_response(request, stored)
        found.claims, found.nonce = claims | told, claims.get("nonce")
        return found

    def _decode_id_token(self, app: SocialApp, id_token: Any) -> dict[str, Any]:
        """Return the claims of an ID token: it comes from the token endpoint, so that its signature adds nothing."""
        try:
            decoded = jwt.decode_complete(
                id_token,
                options=CHECKS,
                audience=app.client_id,
                issuer=self.openid_config["issuer"],
                leeway=LEEWAY,
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error(f"wrong ID token: {error!r}") from error
        claims: dict[str, Any] = decoded["payload"]
        check_json(claims)
        if decoded["header"].get("alg", "none").lower() == "none":
            raise OAuth2Error("the ID token is not signed")
        alone = claims["aud"] in (app.client_id, [app.client_id])
        if claims.get("azp", app.client_id if alone else None) != app.client_id:
            raise OAuth2Error("the ID token is for another client")
        return claims


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
    more = ["groups"] if "groups" in client.openid_config["scopes_supported"] else []
    return [*provider.get_scope(), *more]


@login_not_required
@never_cache
@require_GET
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
