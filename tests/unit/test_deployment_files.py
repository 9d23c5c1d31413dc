"""compose.yaml, Containerfile and the units of systemd: what they must say, and that they say the same."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services import deployment
from tests.services.cases import cases
from tests.services.deployment import ROOT, UNITS

OURS = ("migrate", "web", "work", "notices", "check")
GIVEN = {"POSTGRES_PASSWORD": "one", "PROCESSION_SECRET_KEY": "another"}
EXPOSURE = 20
"""Of 100 that `systemd-analyze security` gives to a service without any limits."""

unit = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)


@cases("without", *GIVEN)
def test_compose_refuses_to_start_without_a_secret(without: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != without}

    with pytest.raises(LookupError, match=f"put {without} into the file .env"):
        deployment.compose(given)


def test_no_secret_stands_in_the_files() -> None:
    for file in (ROOT / "compose.yaml", ROOT / "Containerfile", *UNITS):
        for line in file.read_text().splitlines():
            if re.search(r"(PASSWORD|SECRET\w*|KEY)\s*[:=]\s*\S", line):
                assert "${" in line, f"{file.name}: {line}"


def test_compose_gives_a_secret_to_whom_it_concerns() -> None:
    services = deployment.compose(GIVEN)["services"]

    assert services["database"]["environment"]["POSTGRES_PASSWORD"] == "one"
    for name in OURS:
        assert services[name]["environment"]["PGPASSWORD"] == "one"
        assert services[name]["environment"]["PROCESSION_SECRET_KEY"] == "another"
    assert "one" not in str(services["valkey"])


@cases("name", *OURS)
def test_ours_can_do_no_more_than_they_need(name: str) -> None:
    service = deployment.compose(GIVEN)["services"][name]

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert not service.get("user")  # the image's, which is not root
    not_root = r"(?m)^USER (?!0)\d+:(?!0)\d+$"
    assert re.search(not_root, deployment.CONTAINERFILE)


def test_the_database_and_valkey_can_be_reached_by_ours_alone() -> None:
    found = deployment.compose(GIVEN)

    assert found["networks"]["inside"] == {"internal": True}
    for name in ("database", "valkey"):
        assert found["services"][name]["networks"] == ["inside"]
        assert "ports" not in found["services"][name]
    assert found["services"]["web"]["ports"] == ["127.0.0.1:8000:8000"]
    [config] = found["networks"]["default"]["ipam"]["config"]
    trusted = found["services"]["web"]["environment"]["PROCESSION_TRUSTED_PROXIES"]
    assert trusted == config["subnet"]


def test_whoever_needs_tables_waits_for_them() -> None:
    services = deployment.compose(GIVEN)["services"]

    healthy = {"condition": "service_healthy"}
    assert services["migrate"]["depends_on"]["database"] == healthy
    for name in ("web", "work", "notices"):
        waits: Any = services[name]["depends_on"]
        assert waits["migrate"] == {"condition": "service_completed_successfully"}


def test_image_and_compose_start_the_same_web_server() -> None:
    [command] = re.findall(r"^CMD (.*)$", deployment.CONTAINERFILE, re.MULTILINE)
    web = deployment.compose(GIVEN)["services"]["web"]["command"]

    assert command == str(web).replace("'", '"')


def test_whoever_is_asked_to_end_has_the_time_for_it() -> None:
    """Workers end within 5 s, open requests within 2 s."""
    services = deployment.compose(GIVEN)["services"]
    assert int(services["work"]["stop_grace_period"].removesuffix("s")) > 2 * 5
    assert int(services["web"]["stop_grace_period"].removesuffix("s")) > 2 * 2
    [work] = (path for path in UNITS if "work@" in path.name)
    said = deployment.unit(work)
    assert int(said["TimeoutStopSec"]) > 2 * 5
    # The supervisor ends its workers in order, and one that the system has killed is no reason to end the others.
    assert (said["KillMode"], said["OOMPolicy"]) == ("mixed", "continue")


PROFILES = {"notices": ["notices"], "check": ["nightly"], "backup": ["nightly"]}


def test_compose_starts_by_itself_what_every_set_up_needs() -> None:
    services = deployment.compose(GIVEN)["services"]

    asked = {
        name: one["profiles"] for name, one in services.items() if "profiles" in one
    }
    assert asked == PROFILES
    assert services["check"]["restart"] == "no"  # it has failed where one is broken
    assert "restart" not in services["backup"]


@cases("name", "check", "backup")
def test_every_night_a_timer_starts_a_service_that_ends(name: str) -> None:
    timer, service = (
        deployment.unit(ROOT / "systemd" / f"procession-{name}.{kind}")
        for kind in ("timer", "service")
    )

    assert timer["Unit"] == f"procession-{name}.service"
    assert re.fullmatch(r"\*-\*-\* 0\d:00:00", timer["OnCalendar"])
    assert timer["Persistent"] == "yes"  # one that was missed is made up for
    assert (service["Type"], service["TimeoutStartSec"]) == ("oneshot", "infinity")


def by_compose() -> str:
    shell, script = deployment.compose(GIVEN)["services"]["backup"]["command"][1:]
    assert shell == "-ec"
    return str(script).replace("$$", "$")


def by_systemd() -> str:
    """Return the commands of the unit as one script; systemd ends at the first that fails."""
    lines = deployment.commands(ROOT / "systemd" / "procession-backup.service")
    scripts = [shlex.split(line)[-1] for line in lines]
    assert all(line.startswith("/bin/sh -c 'exec ") for line in lines)
    script = "\n".join(one.removeprefix("exec ") for one in scripts)
    return script.replace("$$", "$").replace("%%", "%")


@pytest.mark.parametrize("backup", [by_compose, by_systemd])
def test_a_backup_is_kept_whole_and_for_its_days(
    backup: Callable[[], str], tmp_path: Path
) -> None:
    """An older one goes only when the new one is there."""
    (tmp_path / "bin").mkdir()
    dump = tmp_path / "bin" / "pg_dump"
    old, new = tmp_path / "2026-01-01-030000.dump", tmp_path / "2026-01-31-030000.dump"
    for file, days in ((old, 15), (new, 13)):
        file.write_text("a backup")
        at = time.time() - days * 86_400
        os.utime(file, (at, at))
    given = {"PATH": f"{dump.parent}:/usr/bin:/bin", "DAYS": "14", "DATABASE_URL": "it"}

    def backs_up(command: str) -> bool:
        dump.write_text(f"#!/bin/sh\n{command}\n")
        dump.chmod(0o755)
        done = subprocess.run(
            ["sh", "-ec", backup()], cwd=tmp_path, env=given, check=False
        )
        return done.returncode == 0

    assert not backs_up("echo half > unfinished; exit 1")
    assert set(tmp_path.glob("*.dump")) == {old, new}
    assert backs_up("echo whole > unfinished")
    [made] = set(tmp_path.glob("*.dump")) - {new}
    assert made.read_text() == "whole\n"


def test_the_image_has_what_the_bundled_project_needs() -> None:
    allowed = deployment.of_the_image()

    for package in ("orchestrator", "monitoring", "examples", "bench"):
        assert any(name.startswith(f"{package}/") for name in allowed)
    assert {"manage.py", "bootstrap.py", "requirements.lock"} <= set(allowed)
    assert not any(name.startswith(("tests/", "docs/", ".")) for name in allowed)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@unit
def test_systemd_understands_the_units(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("there is no systemd-analyze")
    here = {"/srv/procession/.venv/bin/python": sys.executable}
    for path in UNITS:  # each names others
        deployment.write_as_here(path, tmp_path, here)
    name = unit.name.replace("@", "@default")
    if name != unit.name:
        (tmp_path / name).symlink_to(tmp_path / unit.name)
    verified = run(analyze, "verify", "--man=no", str(tmp_path / name))

    # not about what else is installed here
    assert [one for one in verified.stderr.splitlines() if str(tmp_path) in one] == []
    assert verified.returncode == 0, verified.stderr


@unit
def test_no_service_is_exposed(unit: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if not analyze or unit.suffix != ".service":
        pytest.skip("a socket, or there is no systemd-analyze")
    judged = run(
        *(analyze, "security", "--offline=yes", f"--threshold={EXPOSURE}", str(unit))
    )

    if "unrecognized option" in judged.stderr:
        pytest.skip("systemd-analyze is older than 250")
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_the_units_tell_of_no_unknown_setting() -> None:
    known = (ROOT / "docs" / "settings.md").read_text()
    deployed = [one for one in (ROOT / "deploy").rglob("*") if one.is_file()]
    for file in (ROOT / "compose.yaml", ROOT / "Containerfile", *UNITS, *deployed):
        for name in re.findall(r"\bPROCESSION_[A-Z_]+\b", file.read_text()):
            assert f"`{name}`" in known, f"{file.name}: {name}"


def test_every_command_of_the_units_can_be_read_as_systemd_does() -> None:
    for path in UNITS:
        for line in deployment.commands(path):
            assert Path(shlex.split(line)[0]).is_absolute()
