"""The test command: stages side by side, only what the chosen tests need, and a table of the full run."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import full_run, stages
from tests.services import stage
from tests.services.python import printed, ran
from tests.services.stage import IdleCores, Stage

REPORT = """\
<testsuites><testsuite>
<testcase name="test_a" time="41.6"><properties>
<property name="full_size" value="500 orders"/><property name="seconds_at_most" value="150"/>
</properties></testcase>
<testcase name="test_b" time="1.0"><failure/></testcase>
<testcase name="test_c" time="1.0"><skipped/></testcase>
</testsuite></testsuites>"""


def saying(folder: Path, name: str, program: str) -> Stage:
    return Stage(name, ["-c", program], folder / name)


def test_every_dear_test_is_there() -> None:
    lines = (Path(stages.__file__).parent / "data" / "dear_tests.txt").read_text()
    for line in lines.splitlines():
        file, _, test = line.partition("::")
        text = (Path(stages.__file__).parent / file).read_text()
        assert not test or f"def {test.partition('[')[0]}(" in text, line
    assert lines.splitlines() == sorted(set(lines.splitlines()))


def test_the_dearest_tests_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.xml"
    cases = "".join(
        f'<testcase classname="tests.test_x" name="test_{name}"><properties>'
        f'<property name="computing" value="{seconds}"/></properties></testcase>'
        for name, seconds in (("a", "7.5"), ("b", "1.0"), ("c", "30.0"))
    )
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")

    assert stages.within_budget([Stage("some", [], report=report)]) == 0

    told = capsys.readouterr().out.splitlines()
    named = [line for line in told if "tests.test_x" in line]
    assert [line.split()[-1] for line in named] == [
        "tests.test_x.test_c",
        "tests.test_x.test_a",
    ]


def test_stages_run_side_by_side_and_say_what_they_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meet = f"import os; end = os.open({str(tmp_path / 'pipe')!r}, {{}}); print('met')"
    os.mkfifo(tmp_path / "pipe")  # opening either end waits for the other
    reads = saying(tmp_path, "reads", meet.format("os.O_RDONLY"))
    writes = saying(tmp_path, "writes", meet.format("os.O_WRONLY"))
    fails = saying(tmp_path, "fails", "exit(3)")

    stage.run([reads, writes, fails], at_once=2)

    assert [one.ok for one in (reads, writes, fails)] == [True, True, False]
    assert stages.summary([reads, writes]) == 0
    assert stages.summary([reads, fails]) == 1
    assert capsys.readouterr().out.count("met\n") == 2


def test_another_stage_runs_beside_them_while_cores_are_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet = f"import os; os.open({str(tmp_path / 'pipe')!r}, {{}})"
    os.mkfifo(tmp_path / "pipe")  # opening either end waits for the other
    reads = saying(tmp_path, "reads", meet.format("os.O_RDONLY"))
    writes = saying(tmp_path, "writes", meet.format("os.O_WRONLY"))
    monkeypatch.setattr(stage, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(stage, "IDLE_CORES", -1.0)

    stage.run([reads, writes], at_once=1, more=1)

    assert (reads.ok, writes.ok) == (True, True)


def test_idle_cores_are_a_mean_over_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, stage.IDLE_SECONDS / 2, 2 * stage.IDLE_SECONDS])
    idle = iter([100.0, 100.0 + 3 * stage.IDLE_SECONDS])
    monotonic = SimpleNamespace(monotonic=lambda: next(moments))
    monkeypatch.setattr(stage, "time", monotonic)
    monkeypatch.setattr(IdleCores, "_count", lambda self: next(idle))
    cores = IdleCores()

    assert [cores.mean(), cores.mean()] == [0.0, 1.5]


def test_linux_tells_for_how_long_cores_were_idle() -> None:
    assert IdleCores().counted > 0


class Interrupted(Stage):
    """While it is waited for somebody interrupts the command."""

    def ended(self) -> bool:
        raise KeyboardInterrupt


def test_an_interruption_ends_the_stages_that_run(tmp_path: Path) -> None:
    program = "import signal; signal.pause()"
    endless = Interrupted("endless", ["-c", program], tmp_path / "endless")

    with pytest.raises(KeyboardInterrupt):
        stage.run([endless], at_once=1)

    assert endless.process.returncode is not None


ENDED = """
import os, signal
from tests import stages
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for what a shell runs beside itself
stages.everything = lambda *about, **more: os.kill(os.getpid(), signal.{name})
try:
    stages.main([])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_whoever_ends_the_command_interrupts_it(name: str) -> None:
    assert printed(ENDED.format(name=name)) == "interrupted\n"


def test_what_takes_too_long_is_said() -> None:
    assert stages.on_time(59) == "0 min 59 s in all"
    assert stages.on_time(601).startswith("WARNING: 10 min 01 s")


def test_far_more_than_the_budget_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "probes", [stage.PROBE_SECONDS / 2])
    some = [Stage(name, [], computing=1_200.0) for name in ("engine", "console")]
    one_more = Stage("browser", [], computing=1.0)

    assert stages.within_budget(some) == 0
    assert stages.within_budget([*some, one_more]) == 1
    told = capsys.readouterr().out
    assert "FAILED  2401 s of computing. The budget is 1150 s" in told

    # Slow cores need more of their seconds for the same work.
    monkeypatch.setattr(stage, "probes", [stage.PROBE_SECONDS * 2] * 3)
    assert stages.within_budget([*some, one_more]) == 0


def test_without_a_server_each_folder_runs_once_on_sqlite() -> None:
    folders = stages.placed(stages.TESTS, server=False)

    names = ["both", "browser", "console", "engine", "reliability"]
    assert sorted(folders) == [(name, stages.SQLITE) for name in names]
    assert stages.placed(stages.TESTS, server=True) == stages.TESTS


def test_a_report_is_counted_and_its_full_sizes_are_shown(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    of_orders = Stage("orders", [], environ={"DATABASE_URL": ""}, report=report)

    assert of_orders.counts() == (1, 1)
    assert list(full_run.rows_of(of_orders)) == [
        ("`test_a`", "500 orders", "SQLite", "42", "150")
    ]


def test_a_unit_test_alone_starts_at_once_and_needs_no_server() -> None:
    chosen = ["-q", f"{__file__}::{test_what_takes_too_long_is_said.__name__}"]
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}

    done = ran("manage.py", "test", *chosen, environ=os.environ | nowhere)

    assert done.returncode == 0, done.stdout
    assert "PostgreSQL" not in done.stdout
    assert "1 passed, 0 failed" in done.stdout
    computing = re.findall(r"(\d+) s of computing", done.stdout)
    assert max(map(int, computing)) < 10
