"""What is removed of what has ended, in the test's own process."""

from io import StringIO

from django.core.management import call_command


def prune(*options: str) -> str:
    """Remove without pauses what has been kept long enough; return what is told of it."""
    out = StringIO()
    call_command("prune", *options, "--hurry", stdout=out)
    return out.getvalue()
