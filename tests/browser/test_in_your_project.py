"""docs/in-your-project.md, followed word for word in a fresh project that is not ours.

Usually with the packages of this environment, and ours as a wheel lays it out. At full size the wheel is built, and
installed as the page says into a new environment, once for each Django that the page names.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from signal import SIGTERM
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
import pytest
from django.conf import settings
from playwright.sync_api import Browser, expect
from psycopg.sql import SQL, Identifier

from orchestrator.serving import port
from tests.services import postgres
from tests.services.deployment import tracked
from tests.services.patience import A_MINUTE, SHARED, wait_for
from tests.services.sizes import FULL
from tests.services.valkey import ValkeyServer

ROOT: Path = settings.BASE_DIR
PAGE = (ROOT / "docs" / "in-your-project.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\S+/\S+)\n")
[DRIVER] = re.findall(r"`(python -m pip install .psycopg\[.*?)`", PAGE)
LASTING = ("runserver", "work\n")
OFFLINE = ("Failed to establish a new connection", "No matching distribution found")
USUAL = "with the packages of this environment"
DJANGOS = {"Django 5.2": (3, 11), "Django 6.0": (3, 12), "Django 6.1": (3, 12)}
"""With the oldest Python that each works with."""

# A project as people have them: users of its own kind, PostgreSQL, RQ jobs, pages for errors and for signing in, no
# `asgi.py`, requests in transactions, pages in several languages, an address that takes everything, and a package
# `processes` of its own.
OWN = {
    "people/__init__.py": "",
    "people/models.py": """
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class People(BaseUserManager):
    def create_superuser(self, email, password, **more):
        person = self.model(email=email, is_staff=True, is_superuser=True, **more)
        person.set_password(password)
        person.save()
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    USERNAME_FIELD = "email"
    objects = People()
""",
    "people/processes/__init__.py": """
from people.processes.hiring import hire
""",
    "people/processes/hiring.py": """
def hire(person):
    return f"{person} is hired"
""",
    "people/jobs.py": """
from pathlib import Path


def leave(where):
    Path(where).write_text("done")
""",
    "people/tests.py": """
import pytest
from django.urls import reverse


@pytest.mark.django_db
def test_the_login_page(client):
    assert b"our own login" in client.get(reverse("login")).content
""",
    "templates/404.html": "our own 404",
    "templates/403.html": "our own 403",
    "templates/500.html": "our own 500",
    "templates/registration/login.html": """our own login
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Enter</button></form>""",
    "pytest.ini": """
[pytest]
DJANGO_SETTINGS_MODULE = mysite.settings
python_files = tests.py
filterwarnings = error
""",
    "look.py": '''
"""What strangers get to see."""
import json, re
import django
django.setup()
from django.conf import settings
from django.test import Client
client = Client(raise_request_exception=False)
ADDRESSES = ("/nothing/", "/secret/", "/broken/", "/accounts/login/", "/admin/login/", "/about/us/", "/ja/shop/")
seen = {at: client.get(at) for at in ADDRESSES}
texts = {at: re.sub(r'value="\\w{64}"', "", answer.content.decode()) for at, answer in seen.items()}
heads = {at: [answer.status_code, sorted(answer.headers)] for at, answer in seen.items()}
print(json.dumps([texts, heads, settings.MIDDLEWARE]))
''',
}
ASK_AS_PEOPLE = """
from uuid import UUID
from django.test import Client
from people.models import Person
for kind in ({}, {"is_superuser": True}):
    client = Client()
    client.force_login(Person.objects.create(email=f"{len(kind)}@example.org", **kind))
    answer = client.get(f"/ops/processes/{UUID(int=0)}/")
    print(answer.status_code, answer.content.decode())
"""
OWN_SETTINGS = """
import os
DEBUG = os.environ.get("LOOKING") is None
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS += ["people", "django_rq"]
AUTH_USER_MODEL = "people.Person"
DATABASES = {{"default": {{**{database!r}, "ATOMIC_REQUESTS": True}}}}
MIDDLEWARE.insert(2, "django.middleware.locale.LocaleMiddleware")
RQ_QUEUES = {{"default": {{"URL": {redis!r}}}}}
TEMPLATES[0]["DIRS"] = [BASE_DIR / "templates"]
LOGIN_REDIRECT_URL = "/"
"""
OWN_URLS = """
from django.conf.urls.i18n import i18n_patterns
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import include, path, re_path


def secret(request):
    raise PermissionDenied


def broken(request):
    raise RuntimeError


def shop(request):
    return HttpResponse(f"our own shop in {request.LANGUAGE_CODE}")


def any_page(request, address):
    if not address.startswith("about/"):
        raise Http404
    return HttpResponse("about us")


urlpatterns += [
    path("accounts/", include("django.contrib.auth.urls")),
    path("secret/", secret),
    path("broken/", broken),
    *i18n_patterns(path("shop/", shop), prefix_default_language=False),
    re_path("^(.*)$", any_page),
]
"""


class Project:
    """A fresh project, with an environment in which its commands run."""

    def __init__(self, folder: Path, programs: Path, environ: dict[str, str]) -> None:
        self.folder = folder / "mysite"
        self.folder.mkdir()
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environ = {**environ, "PATH": path, "PYTHONUNBUFFERED": "1"}
        self.log = folder / "log"

    def run(self, command: str, **environ: str) -> str:
        """Run a command of a shell to its end; return what it said."""
        done = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=10 * A_MINUTE,
            check=False,
        )
        said = done.stdout + done.stderr
        if done.returncode and any(words in said for words in OFFLINE):
            pytest.skip(f"needs the network: {said.strip().splitlines()[-1]}")
        assert done.returncode == 0, said
        return done.stdout

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """Run a command until the block ends."""
        with self.log.open("a") as log:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield
            assert process.poll() is None, self.log.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGTERM)
            process.wait(10 * SHARED)

    def add(self, file: str, text: str) -> None:
        """Put a text at the end of a file."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as end:
            end.write(text)

    def seen_by_strangers(self) -> object:
        seen: object = json.loads(
            self.run(
                "python look.py", DJANGO_SETTINGS_MODULE="mysite.settings", LOOKING="1"
            )
        )
        return seen


@contextmanager
def own_database(name: str) -> Iterator[dict[str, str]]:
    """Give Django's settings of a new PostgreSQL database."""
    with postgres.address() as url:
        parts = urlsplit(url)
        server = parts._replace(path="/postgres").geturl()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        try:
            yield {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": name,
                "USER": unquote(parts.username or ""),
                "PASSWORD": unquote(parts.password or ""),
                "HOST": parts.hostname or dict(parse_qsl(parts.query)).get("host", ""),
                "PORT": str(parts.port or ""),
            }
        finally:
            with psycopg.connect(server, autocommit=True) as connection:
                statement = SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(statement.format(Identifier(name)))


def as_a_wheel_lays_it_out(folder: Path) -> Path:
    """Return a folder with what a wheel holds, where it holds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = folder / "site"
    for package in wheel["packages"]:
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, site / package, ignore=without)
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, site / target)
    return site


def clone(folder: Path) -> None:
    """Lay the project's files where the page has its clone."""
    for name in tracked() or pytest.skip("needs a clone"):
        target = folder / "procession" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, target)


def python_from(oldest: tuple[int, int]) -> str:
    """Return a Python of this machine that is not older."""
    names = [f"python3.{minor}" for minor in range(oldest[1], oldest[1] + 4)]
    beside = Path.home().glob(".pyenv/versions/*/bin/python3.*[0-9]")
    found = [sys._base_executable, *map(shutil.which, names), *map(str, beside)]  # type: ignore[attr-defined]  # unofficial
    question = f"import sys, ensurepip; sys.exit(sys.version_info < {oldest})"
    for python in filter(None, found):
        command = [python, "-c", question]
        if not subprocess.run(command, capture_output=True, check=False).returncode:
            return str(python)
    pytest.skip(f"needs a Python {'.'.join(map(str, oldest))} on this machine")


def environment(how: str, folder: Path) -> tuple[Path, dict[str, str]]:
    """Make what the page calls the project's environment; return where its programs are, and its variables."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PROCESSION", "DJANGO", "DATABASE", "PYTHON", "PYTEST"))
    }
    if how == USUAL:
        only = {  # as if nothing else of this environment were installed there
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "pytest_django.plugin,orchestrator.testing.plugin",
            "PYTHONPATH": str(as_a_wheel_lays_it_out(folder)),
        }
        return Path(sys.prefix) / "bin", {**own, **only}
    clone(folder)
    python = python_from(DJANGOS[how])
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    return folder / "venv" / "bin", own


@pytest.fixture(params=[USUAL, *(DJANGOS if FULL else ())])
def project(
    request: pytest.FixtureRequest, tmp_path: Path, valkey: ValkeyServer
) -> Iterator[Project]:
    """Make the project that the page is followed in."""
    how: str = request.param
    if not postgres.is_there():
        pytest.skip("no PostgreSQL answers and none can be started here")
    programs, environ = environment(how, tmp_path)
    project = Project(tmp_path, programs, environ)
    if how != USUAL:
        named = how.replace(" ", "==") + ".*"
        project.run(
            f"python -m pip install -q '{named}' psycopg2-binary django-rq pytest pytest-django"
        )
    with own_database(f"test_procession_host_{os.getpid()}") as database:
        project.run("django-admin startproject mysite .")
        (project.folder / "mysite/asgi.py").unlink()
        for file, text in OWN.items():
            project.add(file, text)
        project.add(
            "mysite/settings.py",
            OWN_SETTINGS.format(database=database, redis=valkey.url),
        )
        project.add("mysite/urls.py", OWN_URLS)
        project.run(
            "python manage.py makemigrations people && python manage.py migrate"
        )
        if how != USUAL:
            version = project.run("python -m django --version")
            assert version.startswith(how.removeprefix("Django "))
        yield project


def followed(project: Project, redis: str, web: int, blocks: Sequence[str]) -> str:
    """Do with a block what the page says; return the command that goes on running, if it is one."""
    kind, text = blocks
    text = text.replace("redis://127.0.0.1:6379/0", redis).replace("8000", str(web))
    if kind == "python":
        if named := NAMED.match(text):
            project.add(named[1], text)
        return ""
    if kind != "sh":
        return ""  # a part of a template
    if text.endswith(LASTING) or "runserver" in text:
        return text.strip()
    installed = "PYTHONPATH" in project.environ
    if not (installed and "pip" in text):
        project.run(text)
    if "pip install" in text and not installed:
        project.run(DRIVER)  # the project has psycopg2
    return ""


@pytest.mark.once
@pytest.mark.full_size("on Django 5.2, 6.0 and 6.1, from a wheel", seconds=600)
@pytest.mark.timeout(30 * A_MINUTE)
def test_the_page_is_followed_word_for_word(
    project: Project, browser: Browser, valkey: ValkeyServer
) -> None:
    done = project.folder / "done"
    if FULL:
        project.run("python -m pytest -q")
        before = project.seen_by_strangers()
        project.run(
            'python manage.py shell -c "import django_rq; from people.jobs import leave; '
            f"django_rq.enqueue(leave, '{done}')\""
        )
    project.run(
        "python manage.py createsuperuser --noinput --email own@example.org",
        DJANGO_SUPERUSER_PASSWORD="correct horse",
    )
    web = port.free_port()
    site = f"http://127.0.0.1:{web}"
    context = browser.new_context(base_url=site)
    context.set_default_timeout(120_000)
    page = context.new_page()

    with ExitStack() as stack:
        stack.callback(context.close)
        for block in BLOCKS:
            if "PaymentReceived" in block[1] and block[0] == "sh":
                page.goto("/ops/")
                expect(page).to_have_url(f"{site}/accounts/login/?next=/ops/")
                page.fill("[name=username]", "own@example.org")
                page.fill("[name=password]", "correct horse")
                page.click("button")
                page.click("text=Delivery")
                page.click("text=A-1")
                expect(page.locator("#live")).to_have_attribute("data-state", "live")
                expect(page.locator("#n_AwaitingPayment.is-current")).to_be_visible()
                page.evaluate("window.opened = 'once'")
            if command := followed(project, valkey.url, web, block):
                stack.enter_context(project.running(command))
                if "runserver" in command:
                    wait_for(lambda: answers(web), 20, project.log.read_text)

        expect(page.locator("#n_Shipped.is-current")).to_be_visible()
        assert page.evaluate("window.opened") == "once"
        assert page.url.startswith(f"{site}/ops/processes/")
        if not FULL:
            return
        assert not done.exists()  # nobody but the project's own worker runs its jobs
        assert project.seen_by_strangers() == before
        asked = project.run(
            f"python manage.py shell -v0 -c '{ASK_AS_PEOPLE}'", LOOKING="1"
        )
        assert asked.splitlines() == ["403 our own 403", "404 our own 404"]
        project.run("python manage.py rqworker default --burst")
        assert done.read_text() == "done"
        project.run("python -m pytest -q")
        project.run("python manage.py check --fail-level WARNING --database default")
        project.run("python manage.py makemigrations --check --dry-run")
        assert "0 violations" in project.run("python manage.py check_invariants")


def answers(web: int) -> bool:
    """Tell whether the site serves."""
    with suppress(OSError), socket.create_connection((port.LOOPBACK, web), 1):
        return True
    return False
