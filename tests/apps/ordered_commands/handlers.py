"""Who carries the commands out. Each call leaves a line behind, which nothing rolls back."""

import time
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone

from orchestrator import CommandContext, Permanent, handles
from orchestrator.definition import Command
from orchestrator.models import CommandStatus, IssuedCommand
from tests.apps.ordered_commands.processes import Bind, Edit, Print, Register, Ship
from tests.services.journal import Journal

LEDGER = Journal("books.ledger")
PAPER: Path = settings.DATA_DIR / "books.paper"
PAUSE = 0.02  # seconds that each takes, so that kills meet one
ATTEMPTS = 40


class Call(NamedTuple):
    """One call of a handler after the commit; `late` if the command's end was stored before."""

    title: str
    command: str
    key: str
    late: bool


@handles(Register)
def register(command: Register) -> None:
    """Is a part of the commit."""
    Group.objects.create(name=command.title)


@handles(Edit, after_commit=True, attempts=ATTEMPTS)
def edit(command: Edit, context: CommandContext) -> None:
    note(command.title, command, context)


@handles(Print, after_commit=True, attempts=ATTEMPTS)
def print_it(command: Print, context: CommandContext) -> None:
    """Has no paper twice, or until somebody brings some."""
    note(command.title, command, context)
    if command.trouble == "passing" and context.attempt < 3:
        raise ConnectionError("no paper yet")
    if command.trouble == "lasting" and not PAPER.exists():
        raise Permanent("no paper")


@handles(Bind, after_commit=True, attempts=ATTEMPTS)
def bind(command: Bind, context: CommandContext) -> None:
    note(command.title, command, context)


@handles(Ship, after_commit=True, attempts=ATTEMPTS)
def ship(command: Ship, context: CommandContext) -> None:
    note(command.title, command, context)


def note(title: str, command: Command, context: CommandContext) -> None:
    """Leave a line behind, and take some time."""
    begun = timezone.now()  # the question may be on its way for long: a host is cut off
    ended = (CommandStatus.DONE, CommandStatus.SKIPPED)
    stored = IssuedCommand.objects.filter(
        pk=context.command_id, status__in=ended, finished_at__lt=begun
    )
    call = (title, type(command).__name__, context.idempotency_key)
    LEDGER.note(*call, int(stored.exists()))
    time.sleep(PAUSE)


def calls() -> list[Call]:
    """Return all calls in their order."""
    return [
        Call(title, command, key, late == "1")
        for title, command, key, late in LEDGER.lines()
    ]


def forget() -> None:
    LEDGER.forget()
    PAPER.unlink(missing_ok=True)


def bring_paper() -> None:
    PAPER.touch()
