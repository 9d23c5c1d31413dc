"""The web site in a process of its own."""

import os
import sys
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from orchestrator.serving import port, web
from orchestrator.sign_in import sign_in_path
from tests.services.program import Program
from tests.services.words import words


class Site:
    """The real web server on the test database."""

    def __init__(self) -> None:
        self.listener = port.bind(0)
        self.url = f"http://{port.LOOPBACK}:{self.listener.getsockname()[1]}"
        descriptor = self.listener.fileno()
        command = [sys.executable, "-m", "orchestrator.serving.web", str(descriptor)]
        self.program = Program("site", command, keep=[descriptor])

    def start(self) -> None:
        self.program.start()
        self.program.wait_until(lambda: web.serves(self.url))

    def stop(self) -> None:
        self.program.stop()
        self.listener.close()

    def link(self, user: User) -> str:
        """Return a link that signs `user` in, once."""
        return self.url + sign_in_path(user)


SHOWN = words("every_construct ladder outside_ids process_managers questions searched")
APPS = ",".join(f"tests.apps.{name}" for name in SHOWN)
"""The apps of the tests whose processes browsers are shown."""


@pytest.fixture(scope="module")
def live_site(site_with_apps: Site) -> Iterator[Site]:
    """A site whose code has the processes of these apps beside the examples, as have workers that are started."""
    os.environ["PROCESSION_APPS"] = APPS
    yield site_with_apps
    del os.environ["PROCESSION_APPS"]
