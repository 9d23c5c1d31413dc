"""The filled console, served as `up` serves one: Valkey, web server and workers."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from django.conf import settings
from django.db import connections

from orchestrator.serving import port, valkey, web
from orchestrator.serving.child_processes import ChildProcesses
from orchestrator.serving.programs import Programs


@contextmanager
def running(told: Callable[[str], None]) -> Iterator[str]:
    """Serves it while the block lasts; gives its address.

    Raises:
        CannotStart: a part of it does not start.
    """
    with closing(port.bind(0)) as listener:
        site = f"http://{port.LOOPBACK}:{listener.getsockname()[1]}"
        programs = Programs(settings.DATA_DIR, settings.BASE_DIR)
        programs.set_site_url(site)
        children = ChildProcesses(told, lambda: False)
        connections.close_all()
        try:
            socket = settings.VALKEY_SOCKET
            children.start(programs.valkey(), lambda: valkey.is_up(socket))
            web_server = programs.web(listener.fileno())
            children.start(web_server, lambda: web.serves(site))
            children.start(programs.workers(3))
            yield site
        finally:
            children.end()
