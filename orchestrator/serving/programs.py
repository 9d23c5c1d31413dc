"""The programs that `up` runs, with their commands and environment."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from orchestrator.configuration.environment import generated_secret
from orchestrator.serving import port, valkey
from orchestrator.serving.child_process import ChildProcess

SITE_URL = "PROCESSION_SITE_URL"
SECRET = "PROCESSION_WEBHOOK_SECRET_EXCHANGE"  # noqa: S105  a variable's name

READERS = ("av", "cv2", "onnxruntime", "pypdf", "rapidocr", "vaderSentiment")
"""The modules of the optional extra `media`, except the one without a wheel for every Python."""


def lacks_media_readers() -> bool:
    """Return whether the examples have only their light readers."""
    return any(find_spec(module) is None for module in READERS)


@dataclass
class Programs:
    """The programs of one `up`, each as a child process, with their environment and folders.

    Args:
        data_dir: where their data and logs are.
        root: the folder of `manage.py`.
        environ: the environment they start from.
    """

    data_dir: Path
    root: Path
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self.environ |= {
            "PROCESSION_DATA_DIR": str(self.data_dir),
            "PYTHONUNBUFFERED": "1",
        }
        (self.data_dir / "logs").mkdir(mode=0o700, exist_ok=True)

    def set_site_url(self, site: str) -> None:
        """Make this address the one of links to the site, if the environment names no other."""
        if not self.environ.get(SITE_URL):
            self.environ[SITE_URL] = site

    def valkey(self) -> ChildProcess:
        socket: Path = settings.VALKEY_SOCKET
        return valkey.server(self.data_dir, socket, self.log("valkey"), self.environ)

    def workers(self, processes: int) -> ChildProcess:
        return self.command("workers", "work", "--processes", str(processes))

    def web(self, descriptor: int) -> ChildProcess:
        command = [sys.executable, "-m", "orchestrator.serving.web", str(descriptor)]
        return self.child("web", command, keep=[descriptor])

    def demo(self, web_address: str) -> list[ChildProcess]:
        """Return the simulated exchange and the streams of work; call it before any child that talks to them."""
        exchange_port = port.free_port()
        made = self.data_dir / "webhook_secret_exchange"
        # The exchange and this site find each other by the addresses, and trust each other by the secret.
        self.environ |= {
            "ORDER_LISTING_EXCHANGE_URL": f"http://{port.LOOPBACK}:{exchange_port}",
            "WEBHOOK_URL": web_address + reverse("webhooks:receive", args=["exchange"]),
            SECRET: self.environ.get(SECRET) or generated_secret(made, "whsec_"),
        }
        return [
            self.command("exchange", "exchange", "--port", str(exchange_port)),
            self.command("demo orders", "demo_orders"),
            self.command("demo inquiries", "demo_inquiries"),
            self.command("demo films", "demo_films"),
        ]

    def command(self, name: str, *words: str) -> ChildProcess:
        """Return a management command as a child."""
        return self.child(name, [sys.executable, str(self.root / "manage.py"), *words])

    def child(
        self, name: str, command: Sequence[str], keep: Sequence[int] = ()
    ) -> ChildProcess:
        return ChildProcess(
            name, command, self.environ, self.root, self.log(name), keep
        )

    def log(self, name: str) -> Path:
        return self.data_dir / "logs" / f"{name.replace(' ', '_')}.log"
