"""The bundled project with users of its own kind, everything under an address of its own, behind a proxy's."""

from orchestrator.settings import *  # noqa: F403  that is what it is

INSTALLED_APPS = [*INSTALLED_APPS, "tests.apps.elsewhere"]  # noqa: F405  of the bundled project
AUTH_USER_MODEL = "elsewhere.Member"
ROOT_URLCONF = "tests.apps.elsewhere.all_below"
FORCE_SCRIPT_NAME = "/branch"
