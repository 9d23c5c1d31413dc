"""The base of the demonstration's commands: each enters something again and again."""

import argparse
import random
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, close_old_connections


class Stream(BaseCommand):
    """A steady stream of something until SIGTERM or Ctrl-C; it pauses while there is enough of it."""

    thing: str
    """What is entered, in the singular."""

    pause: float
    """Mean seconds between two."""

    most: int
    """How many there are at most."""

    def enter(self, dice: random.Random) -> None:
        """Enters one."""
        raise NotImplementedError

    def number(self) -> int:
        """How many there are."""
        raise NotImplementedError

    def tend(self) -> None:
        """Do what else there is to do at each turn."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--pause",
            type=float,
            default=self.pause,
            help=f"mean seconds between two; default {self.pause:g}",
        )
        parser.add_argument(
            "--most",
            type=int,
            default=self.most,
            help=f"how many there are when it pauses; default {self.most}",
        )
        parser.add_argument("--seed", type=int, help="makes chance repeatable")

    def handle(self, **options: Any) -> None:
        if not options["pause"] > 0:
            raise CommandError("--pause must be more than 0")
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        dice = random.Random(options["seed"])  # noqa: S311  a demonstration, no secret
        pause = 0.0
        while not ended.wait(pause):
            self._enter(dice, options["most"])
            pause = dice.uniform(0.5, 1.5) * options["pause"]

    def _enter(self, dice: random.Random, most: int) -> None:
        try:
            self.tend()
            if self.number() < most:
                self.enter(dice)
        except DatabaseError as error:  # it comes back, and so does the stream
            self.stderr.write(f"no {self.thing} entered: {error}")
            close_old_connections()
