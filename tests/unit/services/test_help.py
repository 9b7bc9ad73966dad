"""What the commands say of themselves."""

import pytest
import typer
from typer.testing import CliRunner

from shadowtime.services.processes.command_line import app
from shadowtime.shared.cli.command_line import TAKES_SETTINGS

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"settings"}))
def test_whatever_takes_settings_says_where_they_are_listed(name: str) -> None:
    takes = COMMANDS[name].context_settings == TAKES_SETTINGS
    told = CliRunner().invoke(app, [name, "--help"])
    assert told.exit_code == 0
    assert ("see `shadowtime settings`" in told.output) == takes
