"""What a person sees who starts with a setting that cannot be used: one line, and no traceback."""

import os
from pathlib import Path

import pytest

from tests.services.cases import cases
from tests.services.python import ran

pytestmark = pytest.mark.once


def started(words: list[str], tmp_path: Path, **variables: str) -> tuple[int, str]:
    """Run Python with `words` in a set-up that has nothing but these variables; return exit code and output."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    data = {"PROCESSION_DATA_DIR": str(tmp_path / "data")}
    run = ran(*words, environ=known | data | variables)
    return run.returncode, run.stdout + run.stderr


CHECK = ["manage.py", "check"]
STATUS = ["manage.py", "status"]
WEB = ["-m", "orchestrator.serving.web", "3"]


@cases(
    "words, name, value",
    (CHECK, "DATABASE_URL", "postgresql://me:secret@db:port/orders"),
    (CHECK, "PROCESSION_WEBHOOK_SECRET_BANK", "whsec_secret"),
    (STATUS, "PROCESSION_HEARTBEAT_SECONDS", "11"),
    (WEB, "PROCESSION_TRUSTED_PROXIES", "everywhere"),
)
def test_a_start_is_refused_in_one_line_that_names_the_variable(
    words: list[str], name: str, value: str, tmp_path: Path
) -> None:
    code, said = started(words, tmp_path, **{name: value})

    assert code == 1
    assert len(said.splitlines()) == 1
    assert said.startswith(f"{name} must ")
    assert "secret" not in said


def test_a_project_of_one_s_own_is_refused_by_its_system_checks(tmp_path: Path) -> None:
    wrong = "PROCESSION = {'LEASE_SECONDS': -1, 'LEASE': 1}\n"
    ours = f"from orchestrator.settings import *\n{wrong}"
    (tmp_path / "own_settings.py").write_text(ours)

    code, said = started(CHECK, tmp_path, DJANGO_SETTINGS_MODULE="own_settings")

    assert code == 1
    assert said.count("(orchestrator.E007)") == 2
    assert "settings.PROCESSION['LEASE_SECONDS'] must be a number from 1" in said
    assert "settings.PROCESSION['LEASE'] does not exist" in said
    assert "Traceback" not in said


def test_what_can_be_used_starts(tmp_path: Path) -> None:
    code, said = started(CHECK, tmp_path, PROCESSION_LEASE_SECONDS="20")

    assert code == 0
    assert said == "System check identified no issues (0 silenced).\n"


HEADER = """
from django.test import Client
print(Client().get("/livez", secure=True)["Strict-Transport-Security"])
"""
YEAR = "max-age=31536000; includeSubDomains"


@cases("preload, header", ("", YEAR), ("0", YEAR), ("1", f"{YEAR}; preload"))
def test_only_who_asks_for_it_has_the_domain_preloaded(
    preload: str, header: str, tmp_path: Path
) -> None:
    asked = {"PROCESSION_HTTPS": "1", "PROCESSION_HSTS_PRELOAD": preload}
    hosts = {"PROCESSION_ALLOWED_HOSTS": "testserver"}

    code, said = started(
        ["manage.py", "shell", "--no-imports", "-c", HEADER], tmp_path, **asked, **hosts
    )

    assert (code, said) == (0, f"{header}\n")


def test_the_deploy_checks_do_not_ask_for_a_preloaded_domain(tmp_path: Path) -> None:
    hosts = {"PROCESSION_ALLOWED_HOSTS": "procession.example.org"}

    _code, said = started([*CHECK, "--deploy"], tmp_path, PROCESSION_HTTPS="1", **hosts)

    assert "security." not in said


PROXIED = """
from django.conf import settings
from django.core.management import call_command
print(settings.AXES_LOCKOUT_PARAMETERS)
call_command("check", "--deploy")
"""


@cases(
    "proxies, counted",
    ("", "['username']"),
    ("192.0.2.1", "['ip_address', 'username']"),
)
def test_an_unnamed_proxy_is_told_and_its_address_locks_nobody_out(
    proxies: str, counted: str, tmp_path: Path
) -> None:
    asked = {"PROCESSION_HTTPS": "1", "PROCESSION_TRUSTED_PROXIES": proxies}
    hosts = {"PROCESSION_ALLOWED_HOSTS": "procession.example.org"}

    shell = ["manage.py", "shell", "--no-imports", "-c", PROXIED]
    _code, said = started(shell, tmp_path, **asked, **hosts)

    assert said.startswith(counted)
    assert ("orchestrator.W007" in said) == (proxies == "")
