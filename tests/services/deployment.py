"""compose.yaml, Containerfile and the units of systemd, read as those read them who run them."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

ROOT: Path = settings.BASE_DIR
CONTAINERFILE = (ROOT / "Containerfile").read_text()
UNITS = sorted((ROOT / "systemd").iterdir())
VARIABLE = re.compile(r"\$\{(\w+)(:[-?])([^}]*)\}")
OF_THE_PROJECT = "/srv/procession/"
PYTHON = f"{OF_THE_PROJECT}.venv/bin/python"


def compose(given: Mapping[str, str]) -> dict[str, Any]:
    """Return compose.yaml with its variables from `given`.

    Raises:
        LookupError: one is missing that has no default; with what compose says then.
    """

    def value(found: re.Match[str]) -> str:
        name, kind, otherwise = found.groups()
        if given.get(name):
            return given[name]
        if kind == ":?":
            raise LookupError(otherwise)
        return otherwise

    lines = (ROOT / "compose.yaml").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    loaded: dict[str, Any] = yaml.safe_load(VARIABLE.sub(value, text))
    return loaded


def of_the_image() -> list[str]:
    """Return the files that .dockerignore lets into the image."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = tuple(line.removeprefix("!") for line in lines if line.startswith("!"))
    return [name for name in tracked() if name.split("/")[0] in allowed]


def tracked() -> list[str]:
    """Return the files that Git knows, none where there is no clone."""
    asked = ["git", "ls-files"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def unit(path: Path) -> dict[str, str]:
    """Return what a unit says, the last where it says something twice."""
    return dict(lines(path))


def commands(path: Path) -> list[str]:
    return [value for name, value in lines(path) if name == "ExecStart"]


def environment(path: Path) -> dict[str, str]:
    """Return the variables that a unit sets itself."""
    told = " ".join(value for name, value in lines(path) if name == "Environment")
    return dict(word.split("=", 1) for word in shlex.split(told))


def started(name: str, instance: str = "") -> tuple[list[str], dict[str, str]]:
    """Return what systemd starts for a service, and the variables it sets; with the Python of this environment."""
    path = ROOT / "systemd" / f"procession-{name}.service"
    variables = environment(path)
    [line] = commands(path)
    words = shlex.split(line.replace("%i", instance))
    for variable, value in variables.items():
        words = [word.replace(f"${{{variable}}}", value) for word in words]
    assert words[0] == PYTHON
    return [sys.executable, *words[1:]], variables


def write_as_here(path: Path, folder: Path, places: Mapping[str, str]) -> None:
    """Write a unit into `folder`, with other places."""
    text = path.read_text()
    for there, here in places.items():
        text = text.replace(there, here)
    (folder / path.name).write_text(text)


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a unit."""
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            yield name, value
