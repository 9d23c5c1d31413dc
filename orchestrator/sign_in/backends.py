"""Authentication backends whose names sessions keep, so that a session ends where its way in is closed."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest


class SecondFactorBackend(ModelBackend):
    """Knows only users who have a second factor, where each must have one.

    Without it a session is one of a stranger for pages, downloads, calls and sockets alike.
    """

    def get_user(self, user_id: Any) -> Any:
        users: Any = get_user_model()._default_manager
        user = users.filter(pk=user_id, authenticator__type="totp").first()
        return user if self.user_can_authenticate(user) else None


class SingleSignOnBackend(ModelBackend):
    """Stands in the sessions of users whom the provider has signed in. It takes no password."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:  # type: ignore[override]
        return None
