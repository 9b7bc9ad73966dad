"""Whatever somebody called a cluster or a run: on a terminal it is a name, and errors are one line each."""

import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from shadowtime.dashboards import command_line as dashboards
from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.presentation.policies import comparison_table, wait_bound_table
from shadowtime.replayer.presentation.predictions import prediction_table
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.processes import command_line as services
from shadowtime.services.processes.ask.questions import Answer, Question
from shadowtime.services.processes.ask.tables import answer_table
from shadowtime.shared.cli.command_line import run_command
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import SettingsError
from tests.support.live_logs import HOSTILE
from tests.support.patience import PATIENCE
from tests.support.small_logs import generated


def shown(table: object) -> str:
    console = Console(file=StringIO(), highlight=False, width=500)
    console.print(table)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    return str(told)


def test_tables_show_names_as_text() -> None:
    plan = RunPlan(
        "easy", HOSTILE, generated(20), configure("easy"), wait_bound=canonical("wait-bound", "bmbp:publish=plain")
    )
    results = [carry_out(plan, [])]
    question = Question(cluster=HOSTILE, processors=1)
    told: list[object] = [comparison_table(results), prediction_table(results), wait_bound_table(results)]
    told.append(answer_table(question, Answer(cluster=HOSTILE, run=HOSTILE, sequence=1, time=0, bounds=())))
    for each in map(shown, told):
        assert "<img src=x" in each
        assert "\x1b" not in each


@pytest.mark.parametrize("entry", [services, dashboards])
def test_errors_are_one_line(
    entry: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise SettingsError(f"there is no cluster 'kth'; known: {HOSTILE}")

    monkeypatch.setattr(entry, "app", fail)
    with pytest.raises(SystemExit):
        run_command(entry)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()


def test_a_file_of_such_a_name_is_told_of_in_one_line() -> None:
    entry = [sys.executable, "-m", "shadowtime", "replay", "no\x1b[31m such\nlog[/b].swf"]
    done = subprocess.run(entry, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert "log[/b].swf" in line
