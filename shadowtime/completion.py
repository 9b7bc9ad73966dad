"""What completes `shadowtime …` at the touch of TAB: `shadowtime completion SHELL`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from shadowtime.shared.command_line import application, run_app

SCRIPTS = Path(__file__).with_name("completions")


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]) -> None:
    """Print what a shell needs to complete commands, options and names.

    bash: eval "$(shadowtime completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit; fish: shadowtime
    completion fish | source.
    """
    sys.stdout.write((SCRIPTS / f"shadowtime.{shell}").read_text())


def main() -> None:
    """Run the command line."""
    run_app(application(completion))
