"""Authentication backends whose names sessions keep, so that a session ends where its way in is closed."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.db.models import F
from django.http import HttpRequest
from django.utils.crypto import salted_hmac


class SecondFactorBackend(ModelBackend):
    """Knows only users who have a second factor, where each must have one.

    Without it a session is one of a stranger for pages, downloads, calls and sockets alike. A session ends with the
    second factor with which it began, as it ends with its password.
    """

    def get_user(self, user_id: Any) -> Any:
        users: Any = get_user_model()._default_manager
        mine = users.filter(pk=user_id, authenticator__type="totp")
        user = mine.annotate(second_factor=F("authenticator__pk")).first()
        if user is None or not self.user_can_authenticate(user):
            return None
        by_password, factor = user.get_session_auth_hash, user.second_factor

        def by_both() -> str:
            return salted_hmac(__name__, f"{factor} {by_password()}").hexdigest()

        user.get_session_auth_hash = (
            by_both  # anew at each call: the password may change
        )
        return user

    async def aget_user(self, user_id: Any) -> Any:
        return await sync_to_async(self.get_user)(user_id)


class SingleSignOnBackend(ModelBackend):
    """Stands in the sessions of users whom the provider has signed in. It takes no password."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:  # type: ignore[override]
        return None
