"""Whom a name means: the people of the project that the engine runs in."""

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser


def active(name: str) -> AbstractBaseUser | None:
    """The active person who signs in with this name, of whatever kind the project's users are; None if nobody does."""
    model = get_user_model()
    found = model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()
    return found if found is not None and found.is_active else None
