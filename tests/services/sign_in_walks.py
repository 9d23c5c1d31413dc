"""Runs files of walks in a test run of its own, whose environment asks for single sign-on and a second factor.

The settings of the bundled project are read once, when Python starts.
"""

import os

from tests.services.python import ran

ASKED = {
    "PROCESSION_SSO_ISSUER": "https://id.example.org",  # each walk puts its own provider there
    "PROCESSION_SSO_CLIENT_ID": "procession",
    "PROCESSION_SSO_CLIENT_SECRET": "secret-of-the-client",
    "PROCESSION_SSO_NAME": "Example ID",
    "PROCESSION_SSO_GROUPS": "ops-team=operators,ops-team=readers,leads=leaders",
    "PROCESSION_SECOND_FACTOR": "optional",
}


def walked(*files: str) -> None:
    """Run the walks of these files to their end; what is wrong is told as pytest tells it."""
    names = ("PATH", "HOME", "TMPDIR")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    done = ran(*words, environ=kept | ASKED)
    assert done.returncode == 0, done.stdout + done.stderr
