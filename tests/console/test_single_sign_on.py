"""Single sign-on of the bundled project: off unless asked for; the walks through it are in a run of their own.

Those through the second factor are in the same run.
"""

import sys

import pytest
from django.conf import settings

from tests.services.client import Client
from tests.services.sign_in_walks import walked

pytestmark = pytest.mark.once


def test_people_come_in_by_an_openid_provider_and_show_a_second_factor() -> None:
    """One run has both, because its tables take longer to make than all walks."""
    walked(
        "tests/console/single_sign_on_walks.py", "tests/console/second_factor_walks.py"
    )


@pytest.mark.django_db
def test_nothing_of_it_is_there_unless_it_is_asked_for(client: Client) -> None:
    page = client.read("/sign-in/")

    assert "/sign-in/with/" not in page
    assert client.get("/sign-in/with/").status_code == 404
    assert client.get("/second-factor/").status_code == 404
    assert not [app for app in settings.INSTALLED_APPS if "allauth" in app]
    assert not [name for name in sys.modules if name.split(".")[0] == "allauth"]
