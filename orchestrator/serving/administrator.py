"""The first administrator: an account without a password, with a link to sign in."""

from itertools import count
from operator import attrgetter

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import EmailField
from django.urls import reverse

from orchestrator.sign_in import sign_in_path

NAME = "admin"
ADDRESS = "admin@localhost"


def first_administrator() -> AbstractBaseUser:
    """Return the oldest active superuser; make one without a usable password if there is none."""
    users = get_user_model()._default_manager
    superusers = users.filter(is_superuser=True).order_by("pk")
    # In a project's own user model is_active may be no column.
    return (
        next(filter(attrgetter("is_active"), superusers), None) or new_administrator()
    )


def new_administrator() -> AbstractBaseUser:
    """Make a superuser of the project's user model, whose user name may be an e-mail address."""
    model = get_user_model()
    by_address = isinstance(model._meta.get_field(model.USERNAME_FIELD), EmailField)
    names = (f"{number or ''}" for number in count())
    free = (f"{part}{ADDRESS}" if by_address else f"{NAME}{part}" for part in names)
    users = model._default_manager
    name = next(one for one in free if not users.filter(**{model.USERNAME_FIELD: one}))
    user = model(**{model.USERNAME_FIELD: name}, is_superuser=True, is_staff=True)
    user.set_unusable_password()
    user.save()
    return user


def sign_in_lines(user: AbstractBaseUser) -> str:
    """Return the lines that tell `user` how to sign in, with {site} where the site's address belongs."""
    if user.has_usable_password():
        return f"Open {{site}}{reverse('monitoring:definitions')}"
    return (
        f"Open this link to sign in as {user.get_username()}. It works once, within a day:\n\n"
        f"  {{site}}{sign_in_path(user)}"
    )
