"""The examples for nginx and Caddy, run on loopback as they are written, but for addresses and certificate."""

import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from websockets.sync.client import connect
from websockets.typing import Origin

from orchestrator.serving import port
from orchestrator.sign_in import sign_in_path
from tests.services.patience import wait_for
from tests.services.site import Site
from tests.services.valkey import ValkeyServer
from tests.services.wandering import Answer

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

FILES: Path = settings.BASE_DIR / "deploy"
HOSTS = ("procession.example.org", "apps.example.org")
STRANGER = "192.0.2.7"
"""An address that a request says it is from; the webhook source `bank` sends from there."""
KEY = "whsec_YSBrZXkgZm9yIHRoZSBwcm94aWVzLCBhbmQgbm90aGluZyBlbHNl"
SAID = {
    "PROCESSION_HTTPS": "1",
    "PROCESSION_TRUSTED_PROXIES": "127.0.0.1",
    "PROCESSION_ALLOWED_HOSTS": "localhost",
    "PROCESSION_WEBHOOK_SECRET_BANK": KEY,
    "PROCESSION_WEBHOOK_NETWORKS_BANK": "192.0.2.0/24",
}
ALONE = "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}"
PLACES = "client_body_temp_path . ; proxy_temp_path . ; fastcgi_temp_path . ; uwsgi_temp_path . ; scgi_temp_path . ;"
OPTIONS = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"


@pytest.fixture(scope="module")
def sites(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[dict[str, Site]]:
    """Serve the test database under the path of a prefix and without one, as the examples say."""
    if not (shutil.which("nginx") or shutil.which("caddy")):
        pytest.skip("neither nginx nor caddy is installed")
    found = {"": Site(), "/procession": Site()}
    for prefix, site in found.items():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**SAID, "PROCESSION_PATH_PREFIX": prefix}.items():
                patch.setenv(name, value)
            site.program.start()
    yield found
    for site in found.values():
        site.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for this host; its key lies beside it."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    made = tmp_path_factory.mktemp("certificate") / "localhost.pem"
    kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    about = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    where = ["-out", str(made), "-keyout", str(made.with_suffix(".key"))]
    command = ["openssl", *kind.split(), *about.split(), *where]
    subprocess.run(command, check=True, capture_output=True)
    return made


@dataclass
class Proxy:
    """A proxy with HTTPS in front of a site."""

    port: int
    prefix: str
    certificate: Path

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(
            HTTPSConnection("localhost", self.port, context=self.trust)
        ) as connection:
            connection.request(method, self.prefix + path, headers=named)
            found = connection.getresponse()
            return Answer(path, found.status, found.headers, found.read())

    def answers(self) -> bool:
        try:
            return self.ask("/livez").status == 200
        except OSError:
            return False


def as_here(file: str, site: Site, free: int, certificate: Path) -> str:
    """Return an example with the addresses and the certificate of the test."""
    text = (FILES / file).read_text()
    key = certificate.with_suffix(".key")
    places: Mapping[str, str] = {
        r"127\.0\.0\.1:8000": site.url.removeprefix("http://"),
        "listen 80;": f"listen 127.0.0.1:{port.free_port()};",
        "listen 443 ssl;": f"listen 127.0.0.1:{free} ssl;",
        r"/etc/ssl/certs/\w+\.pem": str(certificate),
        r"/etc/ssl/private/\w+\.key": str(key),
        rf"(?m)^({'|'.join(map(re.escape, HOSTS))}) \{{": (
            f"https://localhost:{free} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}"
        ),
        "|".join(map(re.escape, HOSTS)): "localhost",
    }
    for there, here in places.items():
        text = re.sub(there, here, text)
    return (
        f"{ALONE} http {{ access_log off; {PLACES}\n{text}\n}}"
        if file.startswith("nginx")
        else OPTIONS + text
    )


@contextmanager
def running(program: str, config: Path, log: Path) -> Iterator[None]:
    """Run a proxy for the block."""
    words = {
        "nginx": ["-p", str(config.parent), "-c", str(config), "-e", "stderr"],
        "caddy": ["run", "--adapter", "caddyfile", "--config", str(config)],
    }
    command = [str(shutil.which(program)), *words[program]]
    home = {"HOME": str(config.parent)}  # where Caddy writes
    with log.open("wb") as told:
        process = subprocess.Popen(command, env=home, stdout=told, stderr=told)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(params=["nginx.conf", "nginx-path.conf", "Caddyfile", "Caddyfile-path"])
def proxy(
    request: pytest.FixtureRequest,
    sites: dict[str, Site],
    certificate: Path,
    tmp_path: Path,
) -> Iterator[Proxy]:
    """Run one of the examples in front of its site."""
    file = str(request.param)
    program = "nginx" if file.startswith("nginx") else "caddy"
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    prefix = "/procession" if "path" in file else ""
    proxy = Proxy(port.free_port(), prefix, certificate)
    config, log = tmp_path / file, tmp_path / "proxy.log"
    config.write_text(as_here(file, sites[prefix], proxy.port, certificate))
    with running(program, config, log):
        wait_for(proxy.answers, 20, log.read_text)
        yield proxy


def test_pages_and_sockets_go_through_it_and_strangers_are_not_believed(
    proxy: Proxy, administrator: User
) -> None:
    entered = proxy.ask(sign_in_path(administrator))
    assert entered.headers["Location"] == f"{proxy.prefix}/"
    cookie = entered.headers.get_all("Set-Cookie") or []
    assert all("Secure" in one for one in cookie)  # the site knows that it is HTTPS
    cookies = "; ".join(one.partition(";")[0] for one in cookie)

    page = proxy.ask("/", Cookie=cookies)
    [place] = re.findall(r'data-socket="([^"]*)"', page.text)
    assert place == f"{proxy.prefix}/ws/live/"
    origin = f"https://localhost:{proxy.port}"
    with connect(
        f"{origin.replace('http', 'ws')}{place}?watch=overview",
        ssl=proxy.trust,
        origin=Origin(origin),
        additional_headers={"Cookie": cookies},
    ) as socket:
        assert socket.ping().wait(60)
        assert socket.close_code is None  # as it would be without permission

    spoofed = proxy.ask("/hooks/bank/", "POST", X_Forwarded_For=STRANGER)
    assert spoofed.status == 403  # not from the source's network


def test_the_examples_name_the_variables_that_the_site_needs() -> None:
    for file in FILES.glob("*[eh]"):
        named = set(re.findall(r"PROCESSION_\w+", file.read_text()))
        needed = {"PROCESSION_HTTPS", "PROCESSION_ALLOWED_HOSTS"}
        assert named >= needed | {"PROCESSION_TRUSTED_PROXIES"}, file.name
        assert ("PROCESSION_PATH_PREFIX" in named) == ("path" in file.name)
