"""What a built wheel carries beside the packages' own files."""

import tomllib
from typing import Any

import pytest
from django.conf import settings

ROOT = settings.BASE_DIR
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
WHEEL = BUILD["targets"]["wheel"]


@pytest.mark.parametrize("folder", ["templates", "static"])
def test_what_lies_at_the_top_is_where_an_installed_app_has_it(folder: str) -> None:
    assert any((ROOT / folder).rglob("*"))
    assert WHEEL["force-include"][folder] == f"monitoring/{folder}"
    assert "monitoring" in WHEEL["packages"]
    assert not (ROOT / "monitoring" / folder).exists()  # one would hide the other


def test_no_other_folder_of_the_settings_is_left_behind() -> None:
    folders: Any = settings.TEMPLATES[0]["DIRS"]

    assert {*folders, *settings.STATICFILES_DIRS} == {
        ROOT / folder for folder in WHEEL["force-include"]
    }
