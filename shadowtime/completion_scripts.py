"""Generation of the scripts with which shells complete `shadowtime …`.

The build of the wheel writes them into the package (`hatch_build.py`), so that TAB starts no Python. In a checkout
`shadowtime completion` generates the script when it is called.
"""

import argparse
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import shtab
import typer

from shadowtime.__main__ import COMMANDS, GROUPS, SHARED
from shadowtime.replayer.options import KINDS
from shadowtime.replayer.presentation import LISTED, everything

NAMES = {option: sorted(name for kind, name, _, _ in everything() if kind == option) for option in KINDS.values()}
"""Words that may follow an option, by the option's name: the names with which its SPEC may begin."""


def command_of(name: str) -> Any:
    """Return the command, or the group of commands, that `shadowtime NAME` runs."""
    command: Any = typer.main.get_command(import_module(f"shadowtime.{COMMANDS[name]}").app)
    return command.commands[name] if name in SHARED else command


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    parser = argparse.ArgumentParser("shadowtime")
    added = parser.add_subparsers()
    for commands in GROUPS.values():
        for name, (_, sentence) in commands.items():
            add(added.add_parser(name, help=sentence), command_of(name))
    return str(shtab.complete(parser, shell))


def add(parser: argparse.ArgumentParser, command: Any) -> None:
    """Add the options, arguments and sub-commands of a command to its parser."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        added = parser.add_subparsers()
        for name, subcommand in inner.items():
            add(added.add_parser(name, help=help_sentence(subcommand.help)), subcommand)
        return

    for parameter in command.params:
        if parameter.param_type_name == "argument":
            action = parser.add_argument(parameter.name, nargs="*", choices=choices(parameter))
        elif parameter.is_flag:
            parser.add_argument(*parameter.opts, action="store_true", help=help_sentence(parameter.help))
            continue
        else:
            action = parser.add_argument(
                *parameter.opts, choices=choices(parameter), help=help_sentence(parameter.help)
            )

        if takes_a_file(parameter):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def choices(parameter: Any) -> list[str] | None:
    """Return the possible values of an option or argument; None if they cannot be listed."""
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return [str(argument) for argument in get_args(annotation)]
    if parameter.name == "kind" and parameter.param_type_name == "argument":
        return list(LISTED)
    return NAMES.get(parameter.opts[0].removeprefix("--"))


def takes_a_file(parameter: Any) -> bool:
    """Return whether the value of an option or argument is a path."""
    words = parameter.metavar or ""
    return any(word in words for word in ("FILE", "FOLDER", "LOG", "OUT", "TRACE"))


def help_sentence(text: str | None) -> str:
    """Return the first sentence of a text, on one line, without the backticks that a shell would interpret."""
    return " ".join((text or "").split()).partition(". ")[0].removesuffix(".").replace("`", "")
