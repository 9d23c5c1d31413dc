"""The first start on a machine that has nothing but Python: a real environment, filled from a real wheel."""

import ast
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bootstrap
from tests.services.python import ran

ROOT = Path(__file__).resolve().parents[2]

# A project whose only dependency is `probe`, and whose manage.py says where it ended up.
START = """\
import sys
import bootstrap
bootstrap.RUNTIME = bootstrap.Need(["requirements.lock"], ["probe"])
bootstrap.MEDIA = bootstrap.Need(["requirements.lock", "requirements-media.lock"], ["probe", "probe_of_media"])
bootstrap.TESTS = bootstrap.Need(["requirements.lock", "requirements-dev.lock"], ["probe", "probe_of_tests"])
{preamble}
bootstrap.prepare(sys.argv, bootstrap.ROOT)
import probe
print("started", sys.prefix == str(bootstrap.ROOT / ".venv"), probe.VERSION)
"""


class Clone:
    """A project folder, made as a newcomer gets it."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.wheels = wheels
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / "bootstrap.py", folder)
        self.write_start()

    def write_start(self, preamble: str = "") -> None:
        (self.folder / "manage.py").write_text(START.format(preamble=preamble))

    def lock(self, *packages: tuple[str, str], file: str = "requirements.lock") -> None:
        """Make the wheels of `packages` (name, version), and the lock file that names them with their hashes."""
        lines = [locked(wheel(self.wheels, *package)) for package in packages]
        (self.folder / file).write_text("\n".join(lines) + "\n")

    @property
    def command(self) -> list[str]:
        return [str(Path(sys.base_prefix) / "bin" / "python3"), "manage.py"]

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}

    def start(
        self, *words: str, python: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        first, program = self.command
        return subprocess.run(
            [str(self.folder / python) if python else first, program, *words],
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


def wheel(folder: Path, name: str, version: str) -> Path:
    """Make the smallest wheel there is: one module with its version, and where it stands among others."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f'VERSION = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file), content)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record(files, info))
    return path


def record(files: dict[str, str], info: str) -> str:
    lines = []
    for file, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest())
        lines.append(f"{file},sha256={digest.decode().rstrip('=')},{len(content)}")
    return "\n".join([*lines, f"{info}/RECORD,,", ""])


def locked(path: Path) -> str:
    name, version = path.name.split("-")[:2]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, list[str]]:
    """Return a clone that has been started twice at once, and what was said; making an environment takes seconds."""
    folder = tmp_path_factory.mktemp("bootstrap")
    (folder / "wheels").mkdir()
    clone = Clone(folder / "clone", folder / "wheels")
    clone.lock(("probe", "1.0"))
    packages = ("probe", "1.0"), ("probe_of_tests", "1.0")
    clone.lock(*packages, file="requirements-dev.lock")
    where: Any = {"cwd": clone.folder, "env": clone.environ}
    both = [
        subprocess.Popen(clone.command, stdout=subprocess.PIPE, text=True, **where)
        for _ in range(2)
    ]
    return clone, [process.communicate(timeout=100)[0] for process in both]


@pytest.fixture
def clone(started: tuple[Clone, list[str]]) -> Clone:
    """Return the started clone with its first lock file installed."""
    clone, _ = started
    clone.write_start()
    clone.lock(("probe", "1.0"))
    return clone


@pytest.fixture
def new_clone(tmp_path: Path) -> Clone:
    """Return a clone that has never been started."""
    (tmp_path / "wheels").mkdir()
    clone = Clone(tmp_path / "clone", tmp_path / "wheels")
    clone.lock(("probe", "1.0"))
    return clone


def test_the_first_start_installs_and_goes_on(started: tuple[Clone, list[str]]) -> None:
    """Two at once install once."""
    _, outputs = started

    for said in (
        "Making an environment in .venv",
        "Installing the packages of requirements.lock",
        "Waiting for another start",
    ):
        assert sum(said in output for output in outputs) == 1
    assert [output.splitlines()[-1] for output in outputs] == ["started True 1.0"] * 2


def test_a_later_start_installs_nothing_and_says_nothing(clone: Clone) -> None:
    clone.start()

    assert clone.start().stdout == "started True 1.0\n"


def test_a_changed_lock_file_is_installed(clone: Clone) -> None:
    clone.lock(("probe", "2.0"))

    assert clone.start().stdout.endswith("started True 2.0\n")
    assert clone.start().stdout == "started True 2.0\n"


def test_an_interrupted_installation_is_made_good(clone: Clone) -> None:
    """It is noticed inside the environment too."""
    (clone.folder / ".venv" / "procession.stamp").write_text("")

    assert "Installing" in clone.start(python=".venv/bin/python").stdout


def test_a_failed_installation_says_in_one_line_what_to_do(clone: Clone) -> None:
    clone.lock(("probe", "4.0"))
    wheel(clone.wheels, "probe", "4.0").write_bytes(b"something else")

    failed = clone.start()

    assert failed.returncode == 1
    last = failed.stderr.splitlines()[-1]
    assert last.startswith("The packages could not be installed")
    assert "Traceback" not in failed.stderr


def test_each_part_of_a_lock_file_has_whole_packages_and_all_options() -> None:
    """Two pips install the parts side by side."""
    lock = [
        "# Made by a tool",
        "--index-url https://packages.example/simple",
        "",
        "one==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n    # via two",
        "two==2 \\\n    --hash=sha256:3",
        "three==3 \\\n    --hash=sha256:4",
    ]
    parts = bootstrap.parts("\n".join(lock))

    assert [[line for line in lock if line in part] for part in parts] == [
        [*lock[:4], lock[5]],
        [*lock[:3], lock[4]],
    ]


def test_the_test_command_installs_the_lock_file_of_the_tests(clone: Clone) -> None:
    first = clone.start("test")

    assert "requirements-dev.lock" in first.stdout
    assert clone.start("test").stdout == clone.start().stdout == "started True 1.0\n"


def test_the_extra_is_installed_when_it_is_asked_for_and_stays(clone: Clone) -> None:
    packages = ("probe", "1.0"), ("probe_of_media", "1.0")
    clone.lock(*packages, file="requirements-media.lock")
    clone.start("test")

    first = clone.start("install", "media")

    assert "Installing the packages of requirements-media.lock" in first.stdout
    for words in (["install", "media"], ["test"], ["up"]):
        assert clone.start(*words).stdout == "started True 1.0\n"


def test_a_python_without_ensurepip_lends_its_pip(new_clone: Clone) -> None:
    new_clone.write_start('sys.modules["ensurepip"] = None')

    assert new_clone.start().stdout.endswith("started True 1.0\n")
    assert not list(new_clone.folder.glob(".venv/lib/*/site-packages/pip"))


def test_a_python_without_any_pip_names_the_package(new_clone: Clone) -> None:
    new_clone.write_start('sys.modules["ensurepip"] = sys.modules["pip"] = None')

    failed = new_clone.start()

    assert failed.returncode == 1
    assert "apt-get install python3-venv" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_an_environment_of_the_users_own_is_left_alone(new_clone: Clone) -> None:
    with zipfile.ZipFile(next(new_clone.wheels.iterdir())) as archive:
        archive.extractall(new_clone.folder / "elsewhere")

    run = new_clone.start(PYTHONPATH="elsewhere")

    assert run.stdout == "started False 1.0\n"
    assert not (new_clone.folder / ".venv").exists()


def test_an_old_python_is_told_so_in_one_line() -> None:
    source = (ROOT / "manage.py").read_text()
    ast.parse(source, feature_version=(3, 4))  # an older Python can read it at all

    run = ran("-c", f"import sys; sys.version_info = (3, 9, 2); exec({source!r})")

    told = "Procession needs Python 3.11 or newer, and this is Python 3.9.\n"
    assert (run.returncode, run.stderr) == (1, told)
