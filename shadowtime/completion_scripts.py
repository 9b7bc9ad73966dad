"""Make the scripts by which shells complete `shadowtime …`.

The build of the wheel writes them into the package (`hatch_build.py`), so that TAB starts no Python. In a checkout
`shadowtime completion` makes its script when it is called.
"""

import argparse
from typing import Any, Literal, get_args, get_origin

import shtab
import typer

from shadowtime import completion
from shadowtime.__main__ import GROUPS
from shadowtime.dashboards.command_line import app as dashboards
from shadowtime.replayer import (
    check_command,
    check_schedule,
    check_starts,
    convert,
    generate_command,
    list_command,
    live_command,
    scores_command,
    slurm_fit_command,
    slurm_site_command,
    template_search_command,
)
from shadowtime.replayer.campaign import command_line, reproduce
from shadowtime.replayer.catalogue_table import everything
from shadowtime.replayer.command_line import compare
from shadowtime.replayer.compare_command import compare_policies
from shadowtime.replayer.following.command_line import app as follow
from shadowtime.replayer.options import KINDS
from shadowtime.replayer.twin import twin_command
from shadowtime.replayer.twin.command_line import app as shadow
from shadowtime.services.command_line import app as services
from shadowtime.services.workers import workers
from shadowtime.shared.command_line import application
from shadowtime.stack import doctor
from shadowtime.stack.command_line import app as stack

NAMES = {option: sorted(name for kind, name, _, _ in everything() if kind == option) for option in KINDS.values()}
"""What may follow an option, by its name: SPECs begin with a name."""


COMMAND_LINES = {
    "replay": application(compare),
    "compare": application(compare_policies),
    "check": application(check_command.check),
    "check-schedule": application(check_schedule.check_schedule),
    "check-starts": application(check_starts.check_starts),
    "fit-slurm": application(slurm_fit_command.command),
    "slurm-site": application(slurm_site_command.command),
    "convert": application(convert.convert),
    "campaign": application(command_line.campaign),
    "reproduce": application(reproduce.reproduce),
    "generate": application(generate_command.command),
    "list": application(list_command.list_names),
    "doctor": application(doctor.doctor),
    "completion": application(completion.completion),
    "search-templates": application(template_search_command.command),
    "follow": follow,
    "shadow": shadow,
    "scores": application(scores_command.scores),
    "twin": application(twin_command.twin),
    "live": application(live_command.live),
    "serve": workers,
    "stack": stack,
    "dashboards": dashboards,
}
"""Command lines of their own; all other sub-commands are those of `services`."""


def command_of(name: str) -> Any:
    """Return the command, or the group of commands, that `shadowtime NAME` runs."""
    if name in COMMAND_LINES:
        return typer.main.get_command(COMMAND_LINES[name])
    group: Any = typer.main.get_command(services)
    return group.commands[name]


def script(shell: str) -> str:
    """Return the script of a shell."""
    parser = argparse.ArgumentParser("shadowtime")
    added = parser.add_subparsers()
    for commands in GROUPS.values():
        for name, (_, sentence) in commands.items():
            add(added.add_parser(name, help=sentence), command_of(name))
    return str(shtab.complete(parser, shell))


def add(parser: argparse.ArgumentParser, command: Any) -> None:
    """Add what a command takes to a parser that stands for it."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        added = parser.add_subparsers()
        for name, each in inner.items():
            add(added.add_parser(name, help=sentence_of(each.help)), each)
        return
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            action = parser.add_argument(parameter.name, nargs="*", choices=choices(parameter))
        elif parameter.is_flag:
            parser.add_argument(*parameter.opts, action="store_true", help=sentence_of(parameter.help))
            continue
        else:
            action = parser.add_argument(*parameter.opts, choices=choices(parameter), help=sentence_of(parameter.help))
        if takes_a_file(parameter):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def choices(parameter: Any) -> list[str] | None:
    """Return what an option or argument may be, where that is a list."""
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    if parameter.name == "kind" and parameter.param_type_name == "argument":
        return list(KINDS)
    return NAMES.get(parameter.opts[0].removeprefix("--"))


def takes_a_file(parameter: Any) -> bool:
    """Return whether a path stands there."""
    words = parameter.metavar or ""
    return any(word in words for word in ("FILE", "FOLDER", "LOG", "OUT", "TRACE"))


def sentence_of(text: str | None) -> str:
    """Return the first sentence of a text, on one line, without what a shell would read in it."""
    return " ".join((text or "").split()).partition(". ")[0].removesuffix(".").replace("`", "")
