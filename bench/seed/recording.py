"""Running the scenarios for real, each on an empty database, and keeping every row that they have written.

A process of its own does so on a SQLite file that is thrown away: a seeding must not run, or wait for, anything in the
database that it fills.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.core import serializers

from bench.seed.scenarios import SCENARIOS, stand_ins
from bench.seed.written import WrittenRows, copied_models, rows_of, written
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition


@dataclass(frozen=True)
class Recording:
    """What one scenario has written.

    Args:
        name: of the scenario.
        share: how often it is met.
        moment: when it was recorded, in ISO form: what is later lies ahead.
        rows: all rows, and `definitions` those that they refer to, as Django's serializer writes them.
    """

    name: str
    share: float
    moment: str
    rows: str
    definitions: str


def recordings() -> list[Recording]:
    """All scenarios, as a process of its own records them.

    Raises:
        subprocess.CalledProcessError: one of them failed; `stderr` says why.
    """
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(prefix="procession-seed-") as folder:
        environ = {
            **os.environ,
            "DATABASE_URL": "",
            "PROCESSION_DATA_DIR": folder,
            "DJANGO_SETTINGS_MODULE": "orchestrator.settings",
        }
        command = [sys.executable, "-m", "django", "seed", "--record"]
        asked: dict[str, Any] = {"cwd": root, "env": environ, "text": True}
        done = subprocess.run(command, check=True, capture_output=True, **asked)
    return [Recording(**fields) for fields in json.loads(done.stdout)]


def record(only: Collection[str] = SCENARIOS) -> Iterator[Recording]:
    """Runs one scenario after the other; each finds the tables empty and leaves them so.

    Args:
        only: names of the scenarios that are wanted.

    Raises:
        ValueError: there are rows already, which are nobody's to record or to delete.
    """
    for model in copied_models():
        if rows_of(model).exists():
            found = model._meta.verbose_name_plural
            raise ValueError(f"this database is not empty, it has {found}")
    for name in only:
        scenario = SCENARIOS[name]
        with stand_ins():
            before = scenario.play()
        kept = before if isinstance(before, WrittenRows) else written()
        known = serializers.serialize("json", Definition.objects.all())
        yield Recording(name, scenario.share, kept.moment, kept.rows, known)
        for model in copied_models():
            rows_of(model).delete()
        definitions.forget()


def as_json() -> str:
    """All recordings, for the process that asked for them."""
    return json.dumps([asdict(recording) for recording in record()])
