"""Mutants are made of code alone, a copy of the process has each, and survivors without a name fail the run."""

import importlib
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests import mutation_run
from tests.services.mutant_process import in_copy
from tests.services.mutants import (
    Mutant,
    choose_mutants,
    compiled,
    exchange_code,
    mutants_of,
)
from tests.services.python import ran
from tests.services.survivors import SURVIVORS

TILL = '''\
"""A till for coins."""

import functools


class Till:
    """Takes three coins."""

    limit = 3

    @functools.cache
    def is_full(self, coins: int = 1) -> bool:
        """Whether no more coins fit."""
        if coins < 0:
            raise ValueError("fewer than 0")
        return coins >= self.limit and self.is_there(now=True)

    def is_there(self, now: bool) -> bool:
        return now


class LockedTill(Till):
    def is_there(self, now: bool) -> bool:
        return super().is_there(now)
'''

THERE = "self.is_there(now=True)"


@pytest.fixture
def till(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "mutated_till.py").write_text(TILL)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.reload(importlib.import_module("mutated_till"))


def mutant_of(tmp_path: Path, change: str) -> Mutant:
    """Return the one mutant with this change."""
    found = mutants_of(tmp_path / "mutated_till.py", tmp_path)
    [mutant] = [one for one in found if change in one.name]
    return mutant


def test_conditions_values_statements_and_parts_of_calls_are_changed(
    tmp_path: Path, till: ModuleType
) -> None:
    found = mutants_of(tmp_path / "mutated_till.py", tmp_path)

    of_one = [one for one in found if one.function == "Till.is_full"]
    assert {f"{one.before} → {one.after}" for one in of_one} == {
        "coins < 0 → coins <= 0",
        "coins < 0 → coins >= 0",
        "0 of coins < 0 → 1",
        "raise ValueError('fewer than 0') → nothing",
        f"return coins >= self.limit and {THERE} → return None",
        f"coins >= self.limit and {THERE} → coins >= self.limit or {THERE}",
        "coins >= self.limit → nothing",
        "coins >= self.limit → coins > self.limit",
        "coins >= self.limit → coins < self.limit",
        f"{THERE} → nothing",
        "now=True → nothing",
        "True → False",
    }


def test_a_mutant_lives_in_a_copy_of_the_process_alone(
    tmp_path: Path, till: ModuleType
) -> None:
    mutant = mutant_of(tmp_path, "coins >= self.limit → coins > self.limit")

    def play(coins: int, full: bool) -> bool:
        exchange_code(till, mutant, compiled(mutant, tmp_path))
        return bool(till.Till().is_full(coins) == full)

    assert in_copy(lambda: play(3, full=True), most=60)[0] == "killed"
    assert in_copy(lambda: play(4, full=True), most=60)[0] == "survived"
    assert till.Till().is_full(3)


def test_a_mutant_that_never_ends_is_ended() -> None:
    def play() -> bool:
        while True:
            pass

    outcome, computing = in_copy(play, most=1)

    assert outcome == "timed out"
    assert computing > 0  # the kernel counts it in another way than its limit


def test_a_mutant_without_a_call_of_its_base_class_can_be_put_in(
    tmp_path: Path, till: ModuleType
) -> None:
    mutant = mutant_of(tmp_path, "return super().is_there(now) → return None")

    exchange_code(till, mutant, compiled(mutant, tmp_path))
    assert till.LockedTill().is_there(True) is None


def test_a_change_elsewhere_leaves_the_same_mutants_chosen(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mutated_till.py"
    path.write_text(TILL)
    before = [one.name for one in choose_mutants([path], 1, tmp_path)]
    path.write_text(f"{TILL}\n\ndef count(coins: int) -> int:\n    return coins + 1\n")

    after = [one.name for one in choose_mutants([path], 1, tmp_path)]
    assert [name for name in after if "count" not in name] == before
    assert [one.name for one in choose_mutants([path], 2, tmp_path)] != after
    assert len(choose_mutants([path], 1, tmp_path, 3)) == 3


@pytest.mark.parametrize(
    ("fails_anyway", "outcome"), [(False, "killed"), (True, "unreached")]
)
def test_a_test_that_fails_without_the_mutant_too_is_not_used(
    fails_anyway: bool,
    outcome: str,
    tmp_path: Path,
    till: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Mutant] = []

    def play(chosen: list[str], failed: Path | None = None) -> bool:
        fails = bool(made) or fails_anyway
        if fails and failed:
            failed.write_text("0")
        return not fails

    monkeypatch.setattr(mutation_run, "install", made.append)
    monkeypatch.setattr(mutation_run, "_play", play)
    mutant = mutant_of(tmp_path, "coins >= self.limit → coins > self.limit")
    base: Any = SimpleNamespace(failed=tmp_path / "failed", restore=lambda: None)
    recorded: Any = SimpleNamespace(
        seconds={0: 0.1}, nearest=lambda mutant: [*recorded.seconds]
    )
    items: Any = [SimpleNamespace(nodeid="test")]

    played = mutation_run.MutationRun([mutant])
    assert played._outcome_of(mutant, items, recorded, base) == outcome


def test_mutants_are_played_against_the_tests_of_a_file() -> None:
    # Else the engine's tests would be left to another run of `manage.py test`.
    kept = {k: v for k, v in os.environ.items() if k != "PROCESSION_TESTS_PLACED"}
    done = ran(
        *("-m", "tests.mutation_run", "tests/engine/test_optional_steps.py"),
        *("--number", "2"),
        environ=kept,
    )

    assert "[100%]   2 " in done.stdout, done.stdout + done.stderr


def outcomes(tmp_path: Path, killed: int, survivors: int) -> dict[Mutant, str]:
    mutants = mutants_of(tmp_path / "mutated_till.py", tmp_path)
    words = ["killed"] * killed + ["survived"] * survivors
    return dict(zip(mutants, words, strict=False))


def test_survivors_are_named_and_few(
    tmp_path: Path,
    till: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [*_, survivor] = outcomes(tmp_path, 9, 1)

    assert mutation_run.verdict(outcomes(tmp_path, 10, 0), 1.0) == 0
    assert mutation_run.verdict(outcomes(tmp_path, 9, 1), 1.0) == 1
    assert f"NOT NAMED: {survivor.name!r}" in capsys.readouterr().out
    monkeypatch.setitem(SURVIVORS, survivor.name, "It costs more.")
    assert mutation_run.verdict(outcomes(tmp_path, 9, 1), 1.0) == 0
    assert mutation_run.verdict(outcomes(tmp_path, 8, 1), 1.0) == 1


def test_the_table_of_survivors_names_a_tenth_at_most() -> None:
    assert len(SURVIVORS) <= mutation_run.NUMBER / 10
    assert all(reason.endswith(".") for reason in SURVIVORS.values())
