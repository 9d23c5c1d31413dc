"""Makes the environment that `manage.py` runs in, with nothing but the standard library.

Where the packages can be imported already, because the user has an environment, nothing happens here. Elsewhere
`.venv` is made beside this file, filled from the lock file, and `manage.py` starts again inside it. A stamp in `.venv`
names the lock files it was filled from: while they are the same, a start costs a few milliseconds.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent
STARTED_AGAIN = "PROCESSION_STARTED_AGAIN"
PIPS = 2
"""How many pips install at once."""


class CannotInstall(Exception):
    """The environment cannot be made; the message says in one line why, and what to do."""


class Need:
    """What a command needs: lock files, the last of which has everything, and modules that show that it is there."""

    def __init__(self, locks: Sequence[str], modules: Sequence[str]) -> None:
        self.locks = locks
        self.modules = modules

    @property
    def importable(self) -> bool:
        return all(map(find_spec, self.modules))


RUNTIME = Need(
    ["requirements.lock"],
    [
        "django",
        "django_rq",
        "channels",
        "servestatic",
        "uvicorn",
    ],
)
MEDIA = Need(
    [*RUNTIME.locks, "requirements-media.lock"],
    [
        *RUNTIME.modules,
        "av",
        "cv2",
        "onnxruntime",
        "pypdf",
        "rapidocr",
        "vaderSentiment",
    ],
)
TESTS = Need(
    [*RUNTIME.locks, "requirements-dev.lock"],
    [*RUNTIME.modules, "pytest_django", "playwright", "mypy", "ruff"],
)


class Environment:
    """The folder `.venv` of a clone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "procession.stamp"

    @property
    def running(self) -> bool:
        """Whether this Python is the environment's."""
        return Path(sys.prefix).resolve() == self.folder.resolve()

    @property
    def managed(self) -> bool:
        """Whether it was made here, and not by a user who likes the name `.venv` too."""
        return self.stamp.exists()

    def has(self, need: Need) -> bool:
        """Tell whether the lock files of `need`, as they are now, have been installed completely."""
        if self.managed:
            installed = self.stamp.read_text().split()
            return self.python.exists() and set(self.fingerprints(need)) <= set(
                installed
            )
        question = f"from importlib.util import find_spec as f; exit(not all(map(f, {need.modules})))"
        return answers(self.python, question)

    def fingerprints(self, need: Need) -> list[str]:
        return [
            hashlib.sha256((self.root / lock).read_bytes()).hexdigest()
            for lock in need.locks
        ]

    def fill(self, need: Need) -> None:
        """Make the environment if it is missing or broken, and install the lock file of `need`.

        Raises:
            CannotInstall: Python cannot make environments here, or the installation failed.
        """
        if not os.access(self.root, os.W_OK):
            raise CannotInstall(
                f"Cannot write to {self.root}, where the folder .venv belongs."
            )
        if not answers(self.python, "import sys; exit(sys.version_info < (3, 11))"):
            self.make()
        kept = self.still_true()
        # An interrupted installation is not to be taken for a finished one.
        self.stamp.write_text("")
        self.install(need.locks[-1])
        self.stamp.write_text("\n".join([*kept, *self.fingerprints(need)]))

    def still_true(self) -> list[str]:
        """Return what the stamp says of lock files as they are now: they agree with one another."""
        if not self.stamp.exists():
            return []
        locks = sorted(path.name for path in self.root.glob("requirements*.lock"))
        now = self.fingerprints(Need(locks, []))
        return [line for line in self.stamp.read_text().split() if line in now]

    def make(self) -> None:
        """Make the folder anew, with pip in it where this Python brings one along."""
        say("Making an environment in .venv, once.")
        shutil.rmtree(self.folder, ignore_errors=True)
        command = [sys.executable, "-m", "venv", str(self.folder)]
        # Debian splits pip's installer off into the package python3-venv.
        with_pip = find_spec("ensurepip") is not None and run(command) == 0
        if not with_pip and run([*command, "--clear", "--without-pip"]) != 0:
            raise CannotInstall(
                f"Cannot make an environment in {self.folder}: see the lines above."
            )

    def pip(self) -> list[str]:
        """Return the pip to install with: the environment's own, or else the one this Python has."""
        if answers(self.python, "import pip"):
            return [str(self.python), "-m", "pip"]
        if find_spec("pip"):
            return [sys.executable, "-m", "pip", "--python", str(self.python)]
        raise CannotInstall(
            "This Python has neither ensurepip nor pip. Install one of them (on Debian and Ubuntu: "
            "apt-get install python3-venv) and start again."
        )

    def install(self, lock: str) -> None:
        """Install everything that the file `lock` names, checked against the hashes in it."""
        say(f"Installing the packages of {lock}: a minute or so, once.")
        options = [
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--disable-pip-version-check",
            "--no-deps",  # the lock file is complete: there is nothing to work out
            "--no-compile",  # pip does it on one core
        ]
        command = [*self.pip(), "install", "--no-input", *options, "-r"]
        if not side_by_side(command, self.root / lock):
            raise CannotInstall(
                "The packages could not be installed: see pip's lines above. When the network is back, "
                "or the disk has room, start again."
            )
        self.compile()
        say("Installed.")

    def compile(self) -> None:
        """Compile what was installed, on all cores. What cannot be compiled is for another Python."""
        everything = ["-m", "compileall", "-qq", "-j", "0", str(self.folder / "lib")]
        run([str(self.python), *everything])


def prepare(argv: Sequence[str], root: Path = ROOT) -> None:
    """Return if what the command in `argv` needs can be imported; otherwise start it again where it can.

    A mistake ends the process with one line and exit code 1.
    """
    need = need_of(argv)
    environment = Environment(root)
    ours = environment.running and environment.managed
    if need.importable and (not ours or environment.has(need)):
        os.environ.pop(STARTED_AGAIN, None)
        return
    try:
        with one_at_a_time(root):
            if not environment.has(need) or ours:
                environment.fill(need)
        start_again(environment)
    except CannotInstall as refused:
        sys.exit(str(refused))
    except OSError as error:
        sys.exit(f"Cannot make {environment.folder}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit("Interrupted. The next start goes on from here.")


def need_of(argv: Sequence[str]) -> Need:
    """Return what the command in `argv` needs."""
    if argv[1:] == ["install", "media"]:
        return MEDIA
    return TESTS if argv[1:2] in (["test"], ["screens"]) else RUNTIME


def start_again(environment: Environment) -> None:
    """Replace this process by the same command in the environment."""
    if os.environ.get(STARTED_AGAIN):
        raise CannotInstall(
            "The environment in .venv is damaged: remove that folder and start again."
        )
    os.environ[STARTED_AGAIN] = "1"
    python = str(environment.python)
    sys.stdout.flush()
    os.execv(python, [python, *sys.orig_argv[1:]])  # noqa: S606  the same command, elsewhere


@contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Wait until no other process installs into the clone at `root`."""
    folder = os.open(
        root, os.O_RDONLY
    )  # the folder itself, so that no lock file is left behind
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another start that is installing.")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def answers(python: Path, question: str) -> bool:
    """Tell whether `python` exists, and ends the program `question` without complaint."""
    try:
        run = subprocess.run([python, "-c", question], capture_output=True, check=False)
    except OSError:
        return False
    return run.returncode == 0


def run(command: Sequence[str]) -> int:
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def side_by_side(command: Sequence[str], lock: Path) -> bool:
    """Install the packages that the file `lock` names by several pips, each on its core; tell whether all have."""
    seen: list[str] = []
    with TemporaryDirectory() as folder:
        pips = []
        for number, part in enumerate(parts(lock.read_text())):
            file = Path(folder, f"part-{number}.lock")
            file.write_text(part)
            pips.append(quiet([*command, str(file)]))
        expected = packages(lock)
        # The lines of the second pip wait in its pipe meanwhile.
        done = [follow(pip, seen, expected) for pip in pips]
    return all(done)


def packages(lock: Path) -> int:
    """Return how many packages the file `lock` names."""
    return sum("==" in line for line in lock.read_text().splitlines())


def parts(lock: str) -> list[str]:
    """Divide the lines of a lock file; a package has its hashes with it, and each part has the options of pip."""
    blocks = re.split(r"\n(?=[^\s#])", lock.strip())
    options = [block for block in blocks if "==" not in block]
    named = [block for block in blocks if "==" in block]
    return ["\n".join([*options, *named[number::PIPS], ""]) for number in range(PIPS)]


def quiet(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start pip without its many lines on the terminal."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def follow(process: subprocess.Popen[str], seen: list[str], expected: int) -> bool:
    """Count what pip collects, until it ends; show those of its lines that matter when it fails.

    Args:
        process: pip.
        seen: the packages that the pips have collected so far.
        expected: the number of all packages.
    """
    complaints = []
    for line in process.stdout or ():
        if line.startswith("Collecting "):
            seen.append(line.split()[1])
            counter(f"  {len(seen)} of {expected}  {seen[-1]}")
        elif line.startswith("Installing collected"):
            counter("  unpacking")
        elif line.startswith(("ERROR", "WARNING: Retrying")):
            complaints.append(line)
    counter("")
    failed = process.wait() != 0
    if failed:
        sys.stderr.writelines(complaints[-5:])
    return not failed


def counter(text: str) -> None:
    """Show `text` in place of the last one, where there is a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\x1b[K{text}")
        sys.stdout.flush()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
