"""What a built wheel carries beside the packages' own files."""

import sys
import tomllib
from typing import Any

import pytest
from django.conf import settings

ROOT = settings.BASE_DIR
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.mark.parametrize("folder", ["templates/monitoring", "static"])
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
