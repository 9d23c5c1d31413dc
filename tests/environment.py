"""Puts a test run's data, services and secrets where they cannot meet those of an installation.

Loaded by pytest before the settings are read (`-p tests.environment` in pyproject.toml).
"""

import atexit
import os
import shutil
import tempfile
from urllib.parse import urlsplit

SECRET = "whsec_dGVzdHMgdXNlIHRoaXMgb25lLCBub3RoaW5nIGVsc2UgZG9lcw=="
OF_AN_INSTALLATION = (
    "REDIS_URL",
    "PROCESSION_WEB",
    "PROCESSION_APPS",
    "PROCESSION_DEBUG",
    "PROCESSION_SECRET_KEY",
)


def isolate() -> None:
    """Point the environment at a temporary data folder and at a database of this run's own name."""
    folder = tempfile.mkdtemp(prefix="procession-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in OF_AN_INSTALLATION:
        os.environ.pop(name, None)
    os.environ["PROCESSION_DATA_DIR"] = folder
    os.environ["PROCESSION_DEMO"] = "1"  # many tests are about the examples
    os.environ["PROCESSION_WEBHOOK_SECRET_EXCHANGE"] = SECRET
    if url := os.environ.get("DATABASE_URL"):
        os.environ["DATABASE_URL"] = own_name(url)


def own_name(url: str) -> str:
    """Return `url` with a database name of this run, so that two runs on one server do not meet.

    The database itself is never made: Django derives the test database's name from it.
    """
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path}_{os.getpid()}").geturl()


isolate()
