"""The version: this file alone has its number. Builds, pages, metrics and the command line read it here.

A build may load the file by itself, so it imports nothing of the package.
"""

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NUMBER = "0.1.0"
"""The newest release, or the first one to come."""

ROOT = Path(__file__).resolve().parents[2]


def built_version(root: Path = ROOT) -> str:
    """Return the version of the code in a folder: the number, with the commits since that release in a clone."""
    if not (root / ".git").exists():
        return NUMBER
    tag = f"v{NUMBER}"
    tagged = _git(root, "tag", "--list", tag)
    commits = _git(root, "rev-list", "--count", f"{tag}..HEAD" if tagged else "HEAD")
    return NUMBER if commits in ("", "0") else f"{NUMBER}.post{commits}"


def running_version() -> str:
    """Return the version of the running code: of a clone, else of the installed package."""
    if not (ROOT / ".git").exists():
        try:
            return version("procession")
        except PackageNotFoundError:
            pass
    return built_version()


def _git(root: Path, *words: str) -> str:
    """Return the answer of Git; "" where it is not installed, or refuses."""
    command = ["git", "-C", str(root), *words]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if run.returncode else run.stdout.strip()


__version__ = running_version()
