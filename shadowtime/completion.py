"""Shell completion of `shadowtime …`: `shadowtime completion SHELL`."""

import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from shadowtime.shared.cli import application

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[str, ...] = get_args(Shell)

SCRIPTS = Path(__file__).with_name("completions")
"""Folder of the completion scripts in an installed package, written when its wheel is built. A checkout has none."""


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print what a shell needs to complete commands, options and names.

    bash: eval "$(shadowtime completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit; fish: shadowtime
    completion fish | source.
    """
    built = SCRIPTS / f"shadowtime.{shell}"
    sys.stdout.write(built.read_text() if built.is_file() else made(shell))


def made(shell: str) -> str:
    """Make and return the completion script of a shell. Raise `SettingsError` if the library shtab is missing."""
    try:
        from shadowtime.completion_scripts import script
    except ModuleNotFoundError as error:
        if error.name != "shtab":
            raise
        from shadowtime.shared.errors import SettingsError

        raise SettingsError(
            "shtab is missing, with which a checkout makes its completions: pip install shtab, or make setup"
        ) from None

    return script(shell)


app = application(completion)
