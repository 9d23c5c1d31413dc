"""The first administrator: made without a password, let in by a link."""

from django.contrib.auth.models import User

from orchestrator.sign_in import sign_in_path

NAME = "admin"


def first_administrator() -> User:
    """Return the superuser who has been there longest; make one without a usable password if there is none."""
    superusers = User.objects.filter(is_superuser=True, is_active=True)
    return superusers.order_by("pk").first() or User.objects.create_superuser(NAME)


def way_in(user: User) -> str:
    """Return the lines that tell `user` how to sign in, with {site} where the site's address belongs."""
    if user.has_usable_password():
        return "Open {site}/"
    return (
        f"Open this link to sign in as {user.get_username()}. It works once, within a day:\n\n"
        f"  {{site}}{sign_in_path(user)}"
    )
