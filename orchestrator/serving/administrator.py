"""The first administrator: made without a password, let in by a link."""

from operator import attrgetter

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import EmailField
from django.urls import reverse

from orchestrator.sign_in import sign_in_path

NAME = "admin"
ADDRESS = "admin@localhost"


def first_administrator() -> AbstractBaseUser:
    """Return the superuser who has been there longest; make one without a usable password if there is none."""
    users = get_user_model()._default_manager
    superusers = users.filter(is_superuser=True).order_by("pk")
    # Of a user model of the project's own is_active may be no column.
    return (
        next(filter(attrgetter("is_active"), superusers), None) or new_administrator()
    )


def new_administrator() -> AbstractBaseUser:
    """Make a superuser of the project's own kind, who may be called by an e-mail address."""
    model = get_user_model()
    by_address = isinstance(model._meta.get_field(model.USERNAME_FIELD), EmailField)
    named = {model.USERNAME_FIELD: ADDRESS if by_address else NAME}
    user = model(**named, is_superuser=True, is_staff=True)
    user.set_unusable_password()
    user.save()
    return user


def way_in(user: AbstractBaseUser) -> str:
    """Return the lines that tell `user` how to sign in, with {site} where the site's address belongs."""
    if user.has_usable_password():
        return f"Open {{site}}{reverse('monitoring:definitions')}"
    return (
        f"Open this link to sign in as {user.get_username()}. It works once, within a day:\n\n"
        f"  {{site}}{sign_in_path(user)}"
    )
