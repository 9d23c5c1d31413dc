"""`manage.py up`: everything that Procession needs, from one command."""

import math
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from socket import socket
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import OperationalError, connection, connections

from orchestrator.engine.storage import definitions
from orchestrator.management.procession_command import ProcessionCommand, whole_number
from orchestrator.serving import CannotStart, port, valkey, web
from orchestrator.serving.administrator import first_administrator, sign_in_lines
from orchestrator.serving.child_process import ChildProcess
from orchestrator.serving.child_processes import ChildProcesses
from orchestrator.serving.lock import lock_folder
from orchestrator.serving.programs import Programs, lacks_media_readers

PORT = whole_number(0, 65_535, "a port: 1 to 65535, or 0 for any that is free")
PROCESSES = whole_number(1, math.inf, "a number of processes: 1 or more")
PAUSE = 0.2  # seconds between two looks at the children
ELSEWHERE = (
    "up runs the project that Procession brings along. In a project of your own, start its web server as ever, and the "
    "workers with: python manage.py work"
)
LIGHT = "Demo      media are read by light stand-ins; for the real readers: python3 manage.py install media"


class Command(ProcessionCommand):
    """Runs database migrations, Valkey, workers and web server; ends them all on Ctrl-C or SIGTERM."""

    help = "Run Procession: prepare its data, then serve it until Ctrl-C."
    stopping = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=PORT, default=8000, help="default: 8000")
        parser.add_argument(
            "--workers",
            type=PROCESSES,
            default=2,
            help="processes that run steps; default: 2",
        )
        parser.add_argument(
            "--data-dir",
            help="folder for database, queue, secrets and logs; default: .procession",
        )
        parser.add_argument(
            "--demo",
            action="store_true",
            help="add a simulated exchange and streams of orders, inquiries and films",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not hasattr(settings, "DATA_DIR"):
            raise CommandError(ELSEWHERE)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.stop)
        data_dir: Path = settings.DATA_DIR
        try:
            with closing(port.bind(options["port"])) as listener, lock_folder(data_dir):
                programs = Programs(data_dir, settings.BASE_DIR)
                self.run(programs, listener, options["workers"], demo=options["demo"])
        except CannotStart as error:
            sys.exit(str(error))
        self.say("Stopped.")

    def run(
        self, programs: Programs, listener: socket, workers: int, *, demo: bool
    ) -> None:
        """Start the children in the order they need each other, and look after them until it is time to stop."""
        site = f"http://{port.LOOPBACK}:{listener.getsockname()[1]}"
        programs.set_site_url(site)
        self.prepare(programs)
        children = ChildProcesses(self.say, lambda: self.stopping)
        try:
            if settings.EMBEDDED_VALKEY:
                start_valkey(programs, children)
            others = self.demo(programs, site) if demo else []
            children.start(programs.web(listener.fileno()), lambda: web.serves(site))
            for child in [programs.workers(workers), *others]:
                children.start(child)
            if not self.stopping:
                self.greet(site)
            self.watch(children)
        finally:
            children.end()

    def demo(self, programs: Programs, site: str) -> list[ChildProcess]:
        """Return the streams of work; say so if the examples have only light readers."""
        if lacks_media_readers():
            self.say(LIGHT)
        return programs.demo(site)

    def prepare(self, programs: Programs) -> None:
        """Bring the tables up to date, with a row for every definition, so that the first page shows them all.

        Raises:
            CannotStart: the database does not answer.
        """
        self.say(f"Data      {programs.data_dir}")
        self.say(f"Database  {connection.display_name}")
        try:
            call_command("migrate", verbosity=0, interactive=False)
            definitions.store_definitions()
        except OperationalError as error:
            raise CannotStart(
                f"The database does not answer: {str(error).splitlines()[0]}"
            ) from None

    def greet(self, site: str) -> None:
        """Say where the site is and how to get in, now that it answers."""
        lines = sign_in_lines(first_administrator()).format(site=site)
        connections.close_all()  # nothing more is asked of the database here
        self.say(f"\n{lines}\n\nCtrl-C stops everything.")

    def watch(self, children: ChildProcesses) -> None:
        """Look after the children until it is time to stop."""
        while not self.stopping:
            children.look_after()
            time.sleep(PAUSE)
        self.say("Stopping.")

    def stop(self, *_: object) -> None:
        self.stopping = True

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def start_valkey(programs: Programs, children: ChildProcesses) -> None:
    """Start the embedded Valkey, after the end of a previous one.

    Raises:
        CannotStart: the previous one does not end, or the new one does not start.
    """
    socket: Path = settings.VALKEY_SOCKET
    valkey.wait_for_previous(socket)
    children.start(programs.valkey(), lambda: valkey.is_up(socket))
