"""`process export` and `import`: a process with its sub-processes and their history, as lines of JSON."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import click
from django.core.management.base import CommandError, CommandParser

from monitoring.command_line.actions import WAY, active_user, add_user
from monitoring.command_line.selection import USAGE, process_id
from monitoring.command_line.terminal import Terminal, printable_line
from orchestrator.engine.operations import OPERATIONS, ActionRequest
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance


def add_export_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", help="the process id, of no sub-process")
    parser.add_argument(
        "--output", default="-", metavar="FILE", help="standard output without it"
    )
    add_user(parser)


def add_import_arguments(parser: CommandParser) -> None:
    parser.add_argument("file", help='what was exported; "-" is standard input')
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_user(parser)


def export_process(_terminal: Terminal, options: Mapping[str, Any]) -> int:
    pk, request = process_id(options["id"]), _request(options)
    with _open_output(options["output"]) as file, _progress_bar("Exporting") as bar:

        def write(line: bytes) -> None:
            file.write(line)
            bar.update(1)

        def expect(rows: int) -> None:
            bar.length = rows + 2  # the first line and the last are about the others

        action = _operate("export", pk, write, expect, request=request)
    rows = ", ".join(f"{n:,} {name}s" for name, n in action.after["rows"].items())
    sys.stderr.write(f"exported {pk}: {rows}\n".replace("processs", "processes"))
    return 0


def import_process(terminal: Terminal, options: Mapping[str, Any]) -> int:
    request = _request(options)
    with _open_input(options["file"]) as file:
        action = _operate("import", file, request=request)
    row = ProcessInstance.objects.select_related("definition").get(
        pk=action.instance_id
    )
    if options["json"]:
        told = {"id": str(row.pk), "status": row.status, "revision": row.revision}
        terminal.line(json.dumps(told))
        return 0
    stands = f"{terminal.status(row.status)} at revision {row.revision}"
    terminal.line(f"imported {row.pk}, {row.definition}: {stands}")
    if row.finished_at is None:
        terminal.line(f"process resume {row.pk} has it go on")
    return 0


def _request(options: Mapping[str, Any]) -> ActionRequest:
    actor = active_user(options["user"])
    return ActionRequest(actor, uuid4(), options["reason"], way=WAY)


def _operate(name: str, *given: Any, request: ActionRequest) -> OperatorAction:
    operation: Any = OPERATIONS[name]
    try:
        action: OperatorAction = operation(*given, request=request)
    except OperationRefused as refusal:
        raise CommandError(printable_line(f"not {name}ed: {refusal}")) from None
    return action


@contextmanager
def _open_output(path: str) -> Iterator[BinaryIO]:
    """The file to write. A regular file gets its name only when it is complete; others are written directly."""
    try:
        if path == "-":
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        whole = _resolve_path(path)
        special = whole.exists() and not whole.is_file()
        with whole.open("wb") if special else _replace_file(whole) as file:
            yield file
    except BrokenPipeError:
        raise  # the reader has closed the pipe
    except OSError as error:
        raise CommandError(
            f"cannot write to {path or repr('')}: {error.strerror}", returncode=USAGE
        ) from None


def _resolve_path(path: str) -> Path:
    """Return the path without symbolic links, so that a link to the file stays a link."""
    try:
        return Path(path).resolve()
    except ValueError as error:
        raise OSError(0, str(error)) from None


@contextmanager
def _replace_file(whole: Path) -> Iterator[BinaryIO]:
    part = whole.with_name(f".{whole.name}.{uuid4().hex[:8]}")
    try:
        with part.open("xb") as file:
            part.chmod(0o600)  # it has all data of the process
            yield file
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _open_input(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # closed below
        size = Path(path).stat().st_size
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {path!a}: {told}", returncode=USAGE) from None
    with file, _progress_bar("Importing", size) as bar:
        yield FileWithBar(file, bar)  # type: ignore[misc]  # as much of a file as is read of it


def _progress_bar(label: str, length: int = 1) -> Any:
    """Return a progress bar on standard error, where that is a terminal."""
    hidden = not sys.stderr.isatty()
    return click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden)


class FileWithBar:
    """A file that moves a progress bar as it is read."""

    def __init__(self, file: BinaryIO, bar: Any) -> None:
        self._file, self._bar = file, bar

    def readline(self, most: int) -> bytes:
        line = self._file.readline(most)
        self._bar.update(len(line))
        return line

    def read(self, number: int) -> bytes:
        return self._file.read(number)
