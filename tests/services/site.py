"""The web site in a process of its own."""

import os
import sys
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User

from orchestrator.serving import port, web
from orchestrator.sign_in import sign_in_path
from tests.services.program import Program


class Site:
    """The real web server on the test database."""

    def __init__(self) -> None:
        self.listener = port.taken(0)
        self.url = f"http://{port.LOOPBACK}:{self.listener.getsockname()[1]}"
        descriptor = self.listener.fileno()
        command = [sys.executable, "-m", "orchestrator.serving.web", str(descriptor)]
        self.program = Program("site", command, keep=[descriptor])

    def start(self) -> None:
        self.program.start()
        self.program.wait_until(lambda: web.answers(self.url))

    def stop(self) -> None:
        self.program.stop()
        self.listener.close()

    def link(self, user: User) -> str:
        """Return a link that signs `user` in, once."""
        return self.url + sign_in_path(user)


def site_with(*apps: str) -> Callable[..., Iterator[Site]]:
    """Return the fixture of a site whose code has the processes of some apps of the tests beside the examples.

    Args:
        apps: dotted names.
    """

    @pytest.fixture(scope="module")
    def live_site(
        django_db_setup: None, django_db_blocker: object, valkey: object
    ) -> Iterator[Site]:
        os.environ["PROCESSION_APPS"] = ",".join(apps)
        site = Site()
        site.start()
        yield site
        site.stop()
        del os.environ["PROCESSION_APPS"]

    return live_site
