"""The version stands in one file; what is built, runs and is shown has the commits since that release behind it."""

import re
import subprocess
import tomllib
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from django.conf import settings

import orchestrator
from orchestrator.configuration import version
from tests.services.cases import cases
from tests.services.python import ran

ROOT: Path = settings.BASE_DIR
NUMBER = version.NUMBER
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *words: str) -> None:
    command = ["git", "-C", str(folder), *WHO, *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with three commits."""
    git(tmp_path, "init", "-q")
    for number in range(3):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", str(number))
    return tmp_path


def test_the_number_stands_in_one_file() -> None:
    said = re.compile(rf"""version.*["'-]{re.escape(NUMBER)}\b""", re.IGNORECASE)
    files = [*(ROOT / "orchestrator").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    files += [*(ROOT / "monitoring").rglob("*.py"), ROOT / "pyproject.toml"]

    found = [path.name for path in files if said.search(path.read_text())]

    assert found == []
    assert f'"{NUMBER}"' in Path(version.__file__).read_text()


def test_builds_read_it_from_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    source = project["tool"]["hatch"]["version"]
    names: dict[str, Any] = run_path(str(ROOT / source["path"]))

    assert project["project"]["dynamic"] == ["version"]
    assert eval(source["expression"], names) == version.built_version()  # noqa: S307  our own line


def test_without_a_repository_it_is_the_number_alone(tmp_path: Path) -> None:
    assert version.built_version(tmp_path) == NUMBER


def test_in_a_repository_it_counts_the_commits(clone: Path) -> None:
    assert version.built_version(clone) == f"{NUMBER}.post3"


def test_a_release_has_the_number_alone_and_what_follows_is_newer(clone: Path) -> None:
    git(clone, "tag", f"v{NUMBER}")
    assert version.built_version(clone) == NUMBER
    git(clone, "commit", "-q", "--allow-empty", "-m", "later")

    assert version.built_version(clone) == f"{NUMBER}.post1"


def test_a_folder_within_another_repository_does_not_count_that(clone: Path) -> None:
    (clone / "site-packages").mkdir()
    assert version.built_version(clone / "site-packages") == NUMBER


def test_without_git_it_is_the_number_alone(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert version.built_version(clone) == NUMBER


def test_an_installed_package_has_the_version_that_it_was_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "procession-9.8.7.post6.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: procession\nVersion: 9.8.7.post6\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(version, "ROOT", tmp_path)

    assert version.running_version() == "9.8.7.post6"


@cases("words", ["status", "--version"], ["--version"], ["version"])
def test_the_command_line_tells_the_version(words: list[str]) -> None:
    said = ran("manage.py", *words, check=True).stdout
    assert said.startswith(f"Procession {orchestrator.__version__} on Django ")
