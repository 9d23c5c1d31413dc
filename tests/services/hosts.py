"""Hosts of their own on this machine: network, processes and name in namespaces, and a link that can be cut."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from django.conf import settings

from tests.services.program import Program

REMEDY = (
    "needs root's right to make network namespaces, and the programs ip and unshare"
)
NAME = "container"
"""What every host is called, as containers may be."""
INSIDE = [
    *["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"],
    *["sh", "-c", f'hostname {NAME} && exec "$@"', "sh"],
]


class Host:
    """A host with one link to this machine.

    Args:
        place: tells it apart from others of the same run.
    """

    def __init__(self, place: int) -> None:
        self.space = f"procession-{os.getpid()}-{place}"
        self.link = f"pr{os.getpid()}-{place}"
        self.there = f"{self.link}x"
        subnet = f"198.18.{os.getpid() % 256}"  # for tests between networks (RFC 2544)
        self.machine = f"{subnet}.{4 * place + 1}"
        """This machine's address, as the host knows it."""
        self.address = f"{subnet}.{4 * place + 2}"
        self.programs: list[Program] = []

    def make(self) -> None:
        """Make it.

        Raises:
            CalledProcessError: this machine or this user has no namespaces.
        """
        ip("netns", "add", self.space)
        ip("link", "add", self.link, "type", "veth", "peer", "name", self.there)
        ip("link", "set", self.there, "netns", self.space)
        ip("address", "add", f"{self.machine}/30", "dev", self.link)
        ip("link", "set", self.link, "up")
        inside = ("-netns", self.space)
        ip(*inside, "address", "add", f"{self.address}/30", "dev", self.there)
        ip(*inside, "link", "set", self.there, "up")
        ip(*inside, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Let nothing come through any more; nobody is told."""
        ip("link", "set", self.link, "down")

    def mend(self) -> None:
        ip("link", "set", self.link, "up")

    def command(self, name: str, *words: str) -> Program:
        """Return a management command that runs there as its first process, with the environment of its start."""
        manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        inside = ["ip", "netns", "exec", self.space, *INSIDE]
        program = Program(f"{name} on {self.space}", [*inside, *manage, name, *words])
        self.programs.append(program)
        return program

    def stop(self, program: Program) -> None:
        """Ask a command to end, as who runs containers does: its first process."""
        with suppress(psutil.NoSuchProcess):
            for first in psutil.Process(program.pid).children():
                first.terminate()
        program.stop()

    def remove(self) -> None:
        for program in self.programs:
            self.stop(program)
        for what in (("link", "del", self.link), ("netns", "del", self.space)):
            subprocess.run(["ip", *what], check=False, capture_output=True)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def hosts(number: int) -> Iterator[list[Host]]:
    """Give so many hosts; none where they cannot be made."""
    made: list[Host] = []
    try:
        if os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare"):
            with suppress(subprocess.CalledProcessError):
                for place in range(number):
                    made.append(Host(place))
                    made[-1].make()
                subprocess.run([*INSIDE, "true"], check=True, capture_output=True)
                yield made
                return
        yield []
    finally:
        for host in made:
            host.remove()
