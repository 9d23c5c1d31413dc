"""What a command that only stores something loads: a sender waits for it each time."""

import pytest

from orchestrator.models import InboxEvent
from tests.services.program import environ
from tests.services.python import ran

pytestmark = pytest.mark.django_db(transaction=True)

OF_PAGES = {"monitoring.urls", "monitoring.views", "monitoring.diagrams", "graphviz"}
OF_SERVERS = {"orchestrator.workers", "orchestrator.serving", "uvicorn", "servestatic"}
OF_THE_EXAMPLES = {"av", "cv2", "numpy", "pocketsphinx", "rapidocr_onnxruntime"}
OF_DEVELOPERS = {"bench", "tests", "pytest", "mypy", "playwright"}

PROGRAM = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv[0] = "manage.py"
runpy.run_path(sys.argv[0], run_name="__main__")
"""

ORDER = '{"order_id": "A-1", "destination": "internal"}'


def test_sending_an_event_loads_nothing_that_is_for_others() -> None:
    command = ("send_event", "OrderCreated", ORDER, "--id", "1")
    ended = ran("-c", PROGRAM, *command, environ=environ())

    assert InboxEvent.objects.filter(event_id="1").exists(), ended.stderr
    loaded = set(ended.stderr.split())
    assert "orchestrator.engine.storage.inbox" in loaded
    assert loaded & (OF_PAGES | OF_SERVERS | OF_THE_EXAMPLES | OF_DEVELOPERS) == set()


def test_a_command_collects_garbage_though_its_start_does_not() -> None:
    words = ("manage.py", "shell", "-v0", "-c", COLLECTING)
    told = ran(*words, environ=environ(), check=True)

    assert told.stdout.split() == ["True", "True"]


COLLECTING = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 100_000)"
