"""The real web server, and a user for its pages."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user_model,
)

from bench.game import BenchFailed
from orchestrator.serving import port, web
from orchestrator.serving.child_process import ChildProcess
from orchestrator.sign_in import link_backend

ROOT = Path(__file__).resolve().parent.parent
GRACE_SECONDS = 5


@contextmanager
def site(log: Path, patience: float) -> Iterator[str]:
    """Serve the project on a free port for the block, and yield the address.

    Raises:
        BenchFailed: it does not answer within so many seconds.
    """
    with port.bind(0) as listener:
        address = f"http://{port.LOOPBACK}:{listener.getsockname()[1]}"
        number = listener.fileno()
        command = [sys.executable, "-m", "orchestrator.serving.web", str(number)]
        child = ChildProcess("web", command, dict(os.environ), ROOT, log, [number])
        child.start()
        try:
            _await(child, address, time.monotonic() + patience)
            yield address
        finally:
            child.ask_to_end()
            child.wait_until(time.monotonic() + GRACE_SECONDS)


def _await(child: ChildProcess, address: str, until: float) -> None:
    while not web.serves(address):
        if not child.alive or time.monotonic() > until:
            raise BenchFailed(
                f"the web server does not answer: {child.log.read_text()[-500:]}"
            )
        time.sleep(0.1)


@contextmanager
def viewer() -> Iterator[str]:
    """Yield the cookie of a user who may see everything, for the block."""
    user = get_user_model().objects.create_superuser(f"bench-{uuid4().hex}")
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = link_backend()
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    try:
        yield f"{settings.SESSION_COOKIE_NAME}={session.session_key}"
    finally:
        session.delete()
        user.delete()
