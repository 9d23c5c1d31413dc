"""`manage.py reset_second_factor NAME`: removes a second factor, so that its owner can make another one."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from orchestrator.management.procession_command import ProcessionCommand


class Command(ProcessionCommand):
    """Removes a user's second factor."""

    help = "Remove the second factor of a user; at the next sign-in by password or link a new one can be made."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="name of the user")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["username"]
        if not getattr(settings, "PROCESSION_SECOND_FACTOR", ""):
            raise CommandError(
                "This project has no second factor: PROCESSION_SECOND_FACTOR is not set."
            )
        users = get_user_model()._default_manager
        user = users.filter(**{get_user_model().USERNAME_FIELD: name}).first()
        if user is None:
            raise CommandError(f"There is no user {name!r}.")
        from orchestrator.sign_in.second_factor import remove_second_factor  # noqa: PLC0415  needs django-allauth

        if remove_second_factor(user):
            self.stdout.write(f"{name} has no second factor any more.")
        else:
            self.stdout.write(f"{name} had no second factor.")
