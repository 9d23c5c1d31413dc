"""The web server seeks garbage among what is new, and not among all that it has loaded for good."""

from tests.services.python import printed

ASKED = """
import gc
from orchestrator.serving import web

held = [{} for _ in range(1000)]
web._freeze_loaded_objects()
print(gc.get_freeze_count() >= len(held), gc.isenabled(), gc.get_threshold()[2])
"""


def test_what_is_loaded_is_not_looked_through_again() -> None:
    kept, enabled, seldom = printed(ASKED).split()

    assert (kept, enabled) == ("True", "True")
    assert int(seldom) > 10
