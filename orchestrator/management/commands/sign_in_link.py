"""`manage.py sign_in_link NAME`: a link for a person who cannot sign in otherwise."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.urls import NoReverseMatch

from orchestrator.configuration.site_settings import site_url
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.sign_in import sign_in_path


class Command(ProcessionCommand):
    """Prints a link that signs a user in once."""

    help = "Print a link that signs a user in once, within a day. A second factor is asked for besides."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="name of the user")

    def handle(self, *args: Any, **options: Any) -> None:
        model, name = get_user_model(), options["username"]
        found = model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()
        if found is None or not found.is_active:
            raise CommandError(f"There is no active user {name!r}.")
        try:
            path = sign_in_path(found)
        except NoReverseMatch:
            raise CommandError(
                "This project has its own way to sign in: it has no links."
            ) from None
        self.stdout.write(f"{site_url()}{path}")
