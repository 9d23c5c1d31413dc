"""`manage.py test --full`: what each test that has a full size took at it, beside the time that it may take."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.services.stage import Stage, clock, say, slowness

OPTION = "--full"
THESE_ALONE = ["-m", "full_size"]
PAGE = Path(__file__).resolve().parent.parent / "docs" / "full-run.md"
HEAD = """\
# The full run

Written by `python3 manage.py test --full`. It runs the tests of `python3 manage.py test`, and those that compute for
seconds, on both databases at their largest sizes. It holds each of that size to a number of seconds, and allows for
cores that are slower than those on which the number was chosen. With `-m full_size` it runs these alone.

"""

MUTANTS = """
## Mutants

A full run changes 200 small things in the engine, one at a time, and lets the nearest tests notice each. It fails
if less than 90 % of these mutants are killed, or if a survivor is not named with its reason in
`tests/services/survivors.py`. By themselves:

```sh
python3 -m tests.mutation_run
python3 -m tests.mutation_run --seed 35 --number 50
```
"""

SOAKS = """
## What takes longer

A full run takes at most 100 minutes. What would make it longer is a command of its own:

```sh
PROCESSION_TESTS_SOAK=yes python3 manage.py test --full tests/reliability/test_killed_bulk.py
PROCESSION_TESTS_SOAK=yes python3 manage.py test --full tests/both/test_event_schedules.py
```

100,000 items on PostgreSQL took 850 s on 2026-11-28. The 10,000 schedules of events stand in 20 parts, 6 of them
on PostgreSQL. Each takes one to five minutes.
"""


def tell(stages: Sequence[Stage], seconds: float, keep: bool) -> None:
    """Print the table of the stages; write it into the documentation if it is to be kept."""
    rows = sorted(row for stage in stages for row in rows_of(stage))
    head = ["| test | at full size | on | seconds | of |", "|---|---|---|---|---|"]
    table = "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])
    say(f"\n{table}\n{clock(seconds)} in all")
    if keep:
        good, bad = map(sum, zip(*(stage.counts() for stage in stages), strict=True))
        ended = f"{datetime.now(UTC).date()}: {good} passed, {bad} failed, {clock(seconds)} in all"
        ended += f", on cores {slowness():.1f} times slower than those of the budget."
        PAGE.write_text(f"{HEAD}{ended}\n\n{table}\n{MUTANTS}{SOAKS}")


def rows_of(stage: Stage) -> Iterator[tuple[str, ...]]:
    """Yield a row for each of its tests that has a full size."""
    database = "PostgreSQL" if stage.environ.get("DATABASE_URL") else "SQLite"
    for case in stage.cases():
        told = {one.get("name"): one.get("value", "") for one in case.iter("property")}
        if "full_size" in told:
            seconds = f"{float(case.get('time', 0)):.0f}"
            name = f"`{case.get('name')}`"
            yield name, told["full_size"], database, seconds, told["seconds_at_most"]
