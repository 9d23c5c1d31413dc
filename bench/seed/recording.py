"""Runs the scenarios for real, each on an empty database, and keeps all rows that they write.

It does so in a process of its own on a temporary SQLite file: seeding must not run, or wait for, anything in the
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
from bench.seed.written import WrittenRows, copied_models, read_rows, rows_of
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition


@dataclass(frozen=True)
class Recording:
    """The rows of one scenario.

    Args:
        name: the name of the scenario.
        share: how often it occurs.
        moment: the time of the recording, in ISO form: later times are in the future.
        rows: all rows, and `definitions` those that they refer to, as Django's serializer writes them.
    """

    name: str
    share: float
    moment: str
    rows: str
    definitions: str


def recordings() -> list[Recording]:
    """Return all scenarios, recorded in a process of its own.

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
    """Run one scenario after the other; each finds and leaves the tables empty.

    Args:
        only: names of the wanted scenarios.

    Raises:
        ValueError: the tables have rows already.
    """
    for model in copied_models():
        if rows_of(model).exists():
            found = model._meta.verbose_name_plural
            raise ValueError(f"this database is not empty, it has {found}")
    for name in only:
        scenario = SCENARIOS[name]
        with stand_ins():
            before = scenario.play()
        kept = before if isinstance(before, WrittenRows) else read_rows()
        known = serializers.serialize("json", Definition.objects.all())
        yield Recording(name, scenario.share, kept.moment, kept.rows, known)
        for model in copied_models():
            rows_of(model).delete()
        definitions.forget_definitions()


def as_json() -> str:
    """Return all recordings as JSON, for the process that runs this one."""
    return json.dumps([asdict(recording) for recording in record()])
