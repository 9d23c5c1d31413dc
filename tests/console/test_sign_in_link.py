"""`manage.py sign_in_link NAME`, and the first administrator where somebody has taken the name."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from orchestrator.serving.administrator import first_administrator
from tests.services.client import Client

pytestmark = pytest.mark.django_db


def test_a_link_signs_in_whoever_has_a_password(
    viewer: User, client: Client, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.PROCESSION_SITE_URL = "https://procession.example.org"

    call_command("sign_in_link", viewer.username)

    [link] = capsys.readouterr().out.splitlines()
    path = link.removeprefix(settings.PROCESSION_SITE_URL)
    assert path.startswith("/sign-in/link/")
    assert client.get(path).status_code == 302
    assert client.get("/processes/").status_code == 200


def test_nobody_who_is_not_active_gets_one(viewer: User) -> None:
    User.objects.filter(pk=viewer.pk).update(is_active=False)

    for name in (viewer.username, "nobody"):
        with pytest.raises(CommandError, match=f"There is no active user '{name}'"):
            call_command("sign_in_link", name)


def test_the_first_administrator_has_a_name_that_nobody_has() -> None:
    User.objects.create(username="admin")

    assert first_administrator().get_username() == "admin1"
