"""A program that ends while the channel layer is away writes nothing about that into a log that is closed."""

from tests.services.python import printed

PROGRAM = """
import atexit, io, logging
from threading import Event

from monitoring.live import broadcaster
from orchestrator.signals import Change

sending, ending = Event(), Event()

class GoneLayer:
    async def group_send(self, *_):
        sending.set()
        ending.wait(60)
        raise ConnectionError("gone")

async def nobody_is_asked(self):
    pass

broadcaster.get_channel_layer = GoneLayer
broadcaster.Watchers.ask = nobody_is_asked
log = io.StringIO()
logging.basicConfig(stream=log)
broadcaster.broadcast(Change(None, "parcel", revision=1, status="running"))
assert sending.wait(60)
log.close()
atexit.register(ending.set)
"""


def test_nothing_is_said_when_the_program_ends() -> None:
    assert printed(PROGRAM, DJANGO_SETTINGS_MODULE="orchestrator.settings") == ""
