"""What a built wheel and a source distribution carry, and what they say of themselves."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Collection
from email import message_from_bytes
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.conf import settings
from packaging.requirements import Requirement

from tests.services.cases import cases
from tests.services.python import ran
from tests.services.sizes import FULL

ROOT: Path = settings.BASE_DIR
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOR_DJANGO = "Framework :: Django :: "
FOR_PYTHON = "Programming Language :: Python :: "
BUILD = (
    "from hatchling import build; build.build_wheel({0!r}); build.build_sdist({0!r})"
)
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]


@cases("folder", "templates/monitoring", "static")
def test_what_lies_at_the_top_is_where_an_installed_app_has_it(folder: str) -> None:
    assert any((ROOT / folder).rglob("*"))
    assert WHEEL["force-include"][folder] == f"monitoring/{folder}"
    assert "monitoring" in WHEEL["packages"]
    assert not (ROOT / "monitoring" / folder).exists()  # one would hide the other


def test_no_template_of_ours_can_stand_in_for_one_of_the_project() -> None:
    carried = [folder for folder in WHEEL["force-include"] if "templates" in folder]
    own_pages = {"403.html", "403_csrf.html", "404.html", "500.html", "registration"}

    assert carried == ["templates/monitoring"]
    assert {path.name for path in (ROOT / "templates").iterdir()} == {
        "monitoring",
        *own_pages,
    }


def test_no_other_folder_of_the_settings_is_left_behind() -> None:
    folders: Any = settings.TEMPLATES[0]["DIRS"]

    assert {*folders, *settings.STATICFILES_DIRS} == {
        ROOT / folder.partition("/")[0] for folder in WHEEL["force-include"]
    }


def test_checkers_are_told_that_the_packages_have_types() -> None:
    for package in WHEEL["packages"]:
        assert (ROOT / package / "py.typed").is_file()


def test_pytest_finds_the_plugin_of_an_installed_package() -> None:
    plugins = PROJECT["project"]["entry-points"]["pytest11"]

    assert plugins == {"procession": "orchestrator.testing.plugin"}
    assert plugins["procession"] in sys.modules  # it runs here too


# What they say of themselves


def classified(kind: str) -> set[str]:
    """Return the versions that the classifiers name."""
    found = [line.removeprefix(kind) for line in PROJECT["project"]["classifiers"]]
    return {line for line in found if re.fullmatch(r"\d\.\d+", line)}


def test_it_says_to_be_for_the_djangos_that_it_is_tried_with() -> None:
    page = (ROOT / "docs" / "in-your-project.md").read_text()
    [told] = re.findall(r"in fresh projects on Django (.*?),? with a user", page)

    assert classified(FOR_DJANGO) == set(re.findall(r"\d\.\d", told))


def test_it_says_to_be_for_the_oldest_python_that_it_takes() -> None:
    assert f">={min(classified(FOR_PYTHON))}" == PROJECT["project"]["requires-python"]


@cases("extra", "postgres", "server")
def test_an_extra_for_other_projects_takes_the_versions_of_the_bundled_one(
    extra: str,
) -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    bundled = {
        one.name: one.specifier for one in map(Requirement, extras["standalone"])
    }

    for one in map(Requirement, extras[extra]):
        assert bundled[one.name] == one.specifier


def test_no_links_lead_to_where_nothing_is_said_to_be() -> None:
    """Nothing is published anywhere yet; an address in the metadata is one that the README gives too."""
    readme = (ROOT / "README.md").read_text()

    for address in PROJECT["project"].get("urls", {}).values():
        assert address in readme


# Built for real


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both with the backend that is declared; at full size it is fetched, unless it is there."""
    folder = tmp_path_factory.mktemp("built")
    path = ""
    if find_spec("hatchling") is None:
        if not FULL:
            pytest.skip("needs hatchling, which a full run fetches")
        path = str(folder / "backend")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", path]
        wanted = PROJECT["build-system"]["requires"]
        if subprocess.run([*pip, *wanted], check=False).returncode:
            pytest.skip("needs the network")
    environ = {**os.environ, "PYTHONPATH": path}
    done = ran("-c", BUILD.format(str(folder)), environ=environ)
    assert done.returncode == 0, done.stderr
    return folder


def tracked(*folders: str) -> set[str]:
    """Return the project's files, in these folders or anywhere."""
    command = ["git", "ls-files", *folders]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    names = listed.stdout.decode().splitlines()
    there = {name for name in names if (ROOT / name).exists()}
    return there or pytest.skip("needs a clone")


def test_the_wheel_holds_both_packages_and_nothing_else(dist: Path) -> None:
    [path] = dist.glob("*.whl")
    with ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        [about] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        said = message_from_bytes(wheel.read(about))

    expected = tracked(*WHEEL["packages"])
    for source, target in WHEEL["force-include"].items():
        expected |= {name.replace(source, target, 1) for name in tracked(source)}
    assert names == expected
    assert said.get_all("Classifier") == PROJECT["project"]["classifiers"]
    assert said["License-Expression"] == "MIT"
    assert re.match("# Procession", str(said.get_payload()))


def test_the_source_distribution_holds_all_that_is_here(dist: Path) -> None:
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as sources:
        names: Collection[str] = [name.partition("/")[2] for name in sources.getnames()]

    assert {*names} - {"PKG-INFO"} == tracked()
