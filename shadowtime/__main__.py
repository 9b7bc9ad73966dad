"""The command `shadowtime`. It finds the sub-command and imports only the modules that it needs."""

import sys

from shadowtime._version import __version__
from shadowtime.shared.cli import end_unwritten, end_with, run, write_on_any_terminal

GROUPS = {
    "Replay": {
        "replay": ("replayer.commands.replay", "replay logs under policies and compare them"),
        "compare": ("replayer.commands.compare", "replay logs under six policies, with a report"),
        "sweep": ("replayer.sweep.command_line", "replay a grid of policies, sizes and loads; name the best"),
        "plan": ("replayer.sweep.plan_command", "find the smallest machine or largest load for a target"),
        "campaign": ("replayer.campaign.command_line", "carry out a grid of replays, on all cores or on Dask"),
        "reproduce": ("replayer.campaign.reproduce", "reproduce a table of a paper"),
        "check": ("replayer.commands.check", "report what a log contains, what it lacks and what is odd"),
        "check-starts": ("replayer.commands.check_starts", "measure how close policies come to a site's real starts"),
        "check-schedule": ("replayer.commands.check_schedule", "compare another simulator's schedule with a policy's"),
        "convert": ("replayer.commands.convert", "write the usable jobs of a log as a clean log"),
        "generate": ("replayer.commands.generate", "write a log of a synthetic workload"),
        "fit-slurm": ("replayer.commands.fit_slurm", "fit the policy slurm to a site's real starts"),
        "slurm-site": ("replayer.commands.slurm_site", "export the settings of a Slurm, for the policy slurm"),
        "search-templates": ("replayer.commands.search_templates", "find templates of similar jobs for a log"),
        "list": ("replayer.commands.list", "list policies, predictors, … and their keys"),
    },
    "On the stream": {
        "follow": ("services.follower.command_line", "follow a live cluster of Slurm, PBS or another system"),
        "shadow": ("services.shadows.command_line", "run other policies beside a live run, on the same jobs"),
        "scores": ("replayer.commands.scores", "print the current scores of a run, live or finished"),
        "twin": ("services.processes.twin_command", "compare a cluster with its shadows"),
        "serve": ("services.processes.workers", "run a worker: a stage, or the writer of metrics"),
        "live": ("services.processes.live_command", "serve the live page"),
        "ask": ("services.processes.command_line", "bound the wait of a job that you could submit now"),
        "queue": ("services.processes.queue_command", "show the queue of a cluster, with expected starts"),
        "watch": ("services.processes.command_line", "show the messages of a topic as they arrive"),
        "rebuild": ("services.processes.command_line", "rebuild the state of a stage from its topic"),
        "remove": ("services.processes.command_line", "remove a run and all its state"),
        "topics": ("services.processes.command_line", "create the topics that are missing"),
        "settings": ("services.processes.command_line", "print every setting with its flag and value"),
        "asyncapi": ("services.processes.command_line", "print the topics as an AsyncAPI document"),
    },
    "Servers and dashboards": {
        "stack": ("stack.local.command_line", "run servers and workers as local processes: up, down"),
        "install-units": ("stack.units.command_line", "write systemd units for the whole stack"),
        "dashboards": ("dashboards.command_line", "generate dashboards and push them into a Grafana"),
    },
    "This installation": {
        "doctor": ("stack.local.doctor", "report installed parts, servers that answer, and remedies"),
        "completion": ("completion", "print what bash, zsh or fish need to complete commands"),
    },
}
"""Module and one line of help for each sub-command, in groups."""

COMMANDS = {name: module for group in GROUPS.values() for name, (module, _) in group.items()}
SHARED = {name for name, module in COMMANDS.items() if module == "services.processes.command_line"}
"""Sub-commands that share one typer application. It expects their name as its first argument."""


def help_text() -> str:
    """Return the text of `--help`."""
    lines = ["usage: shadowtime COMMAND …", "       shadowtime help COMMAND", "       shadowtime --version", ""]
    for group, commands in GROUPS.items():
        lines += [f"{group}:", *(f"  {name:18}{text}" for name, (_, text) in commands.items()), ""]
    return "\n".join([*lines, "For details: shadowtime COMMAND --help"])


def main() -> None:
    """Run the sub-command named on the command line."""
    write_on_any_terminal()
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name == "help" and len(sys.argv) > 2:
        name = sys.argv[2]
        sys.argv[1:] = [name, "--help"]
    if name in ("--help", "-h", "help", "--version"):
        _print(f"shadowtime {__version__}" if name == "--version" else help_text())
        return
    if name not in COMMANDS:
        from shadowtime.shared.quoting import among

        end_with(f"unknown command {name!r:.60}{among(name, COMMANDS)}")
    run(module_of(name))


def _print(text: str) -> None:
    try:
        print(text, flush=True)  # noqa: T201
    except OSError as error:
        end_unwritten(error)


def module_of(name: str) -> str:
    """Change `sys.argv` to the arguments that a sub-command's module expects, and return the module's name."""
    sys.argv[:2] = ["shadowtime", name] if name in SHARED else [f"shadowtime {name}"]
    return f"shadowtime.{COMMANDS[name]}"


if __name__ == "__main__":
    main()
