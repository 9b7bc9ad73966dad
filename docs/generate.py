"""Write docs/reference/, and a drawing in docs/architecture.md, from the code: `python docs/generate.py`."""

import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from package_map import rows
from pydantic.fields import FieldInfo

from shadowtime.__main__ import GROUPS
from shadowtime.completion_scripts import command_of
from shadowtime.replayer.api.frames import DECISION_COLUMNS, JOB_COLUMNS
from shadowtime.services.catalogue import DEFAULTS, REGISTRIES
from shadowtime.services.scheduler.registry import RECOMMENDED
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages import Kill, Reason, Scores, Start
from shadowtime.shared.messages.base import FrozenModel
from shadowtime.shared.metric_names import METRICS, RESULTS, RUN, Metric
from shadowtime.shared.spec import as_text
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.run import TRANSITIONS

FOLDER = Path(__file__).parent / "reference"
PAGE = Path(__file__).parent / "architecture.md"
HEAD = "<!-- Written by docs/generate.py; what stands here is changed in the code. -->\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)) + "\n"


def sentence(text: str) -> str:
    """Return a text as a sentence in one paragraph of Markdown."""
    text = " ".join(text.split()).replace("<", "&lt;").replace("[", r"\[")
    first = text.partition(" ")[0].rstrip(",;")
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun + ("" if text.endswith((".", "?", "…")) else ".")


def values(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Return what a value may be: its type, or all values there are, and its bounds."""
    bounds = {
        name: bound
        for entry in metadata
        for name in ("ge", "gt", "le", "lt")
        if (bound := getattr(entry, name, None)) is not None
    }
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{argument}`" for argument in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(
            values(argument, metadata) for argument in get_args(annotation) if argument is not type(None)
        )

    if annotation is bool:
        return "`yes`, `no`"
    name = {int: "whole number", float: "number", str: "text"}.get(annotation, "")
    name = name or {"Path": "file", "SecretStr": "secret"}[annotation.__name__]
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [f"{words[word]} {bound:,}".removesuffix(".0") for word, bound in sorted(bounds.items())]
    return ", ".join([name, *limits])


def page(title: str, *parts: str) -> str:
    """Return a whole page."""
    return "\n".join([HEAD, f"# {title}\n", *parts])


def commands() -> str:
    """Return the page of all commands."""
    parts = [
        "`shadowtime COMMAND --help` tells the same on a terminal. A mistake on the command line is one line that "
        "names the option, with status 2; Ctrl-C ends with 130.\n"
    ]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            parts.extend(command_parts(f"shadowtime {name}", command_of(name)))
    return page("Commands", *parts)


def command_parts(path: str, command: Any) -> Iterator[str]:
    """Yield what the page says of a command, or of each command of a group."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, subcommand in inner.items():
            yield from command_parts(f"{path} {name}", subcommand)
        return

    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    yield f"### {path}\n"
    yield sentence(command.help) + "\n"
    words = [path, *(spelled(argument).strip("`") for argument in arguments), *["[OPTIONS]"] * bool(options)]
    yield f"```text\n{' '.join(words)}\n```\n"
    if arguments or options:
        rows = [
            (spelled(parameter), shown(parameter), sentence(parameter.help or ""))
            for parameter in (*arguments, *options)
        ]
        yield table(("", "default", "meaning"), rows)

    if command.epilog:
        yield "Takes every [setting](settings.md) as a flag, too.\n"


def spelled(parameter: Any) -> str:
    """Return an argument or option as one writes it."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(f"`{option}`" for option in parameter.opts)
    if parameter.is_flag:
        return names
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return f"{names} {values(annotation)}".replace(", `", " or `")
    words = parameter.metavar or {int: "N", float: "NUMBER"}.get(annotation, "FILE")
    return f"{names} {' or '.join(f'`{word}`' for word in words.split('|'))}"


def shown(parameter: Any) -> str:
    """Return the default of an argument or option."""
    if parameter.required:
        return "required"
    default = parameter.default
    if isinstance(default, Path) and default.is_relative_to(ROOT):
        default = default.relative_to(ROOT)
    return "" if default is None or default is False else f"`{default}`"


def key_row(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Return what the table of keys says of one."""
    default = f"`{as_text(field.default)}`"
    return f"`{name}`", default, values(field.annotation, field.metadata), sentence(field.description or "")


KEYS = ("key", "default", "values", "meaning")

OPTIONS = {
    "policy": ("Policies", "--policy", "Which waiting jobs start, and when."),
    "runtime": ("Predictors of run times", "--runtime, or `runtime=` of a policy", "How long a job will run."),
    "adjustment": (
        "Adjusters of requests",
        "--adjustment, or `adjustment=` of a policy",
        "How much of its requested time a job will use.",
    ),
    "wait-bound": ("Bounders of waits", "--wait-bound", "How long a job will wait at most (`bmbp` in recorded mode)."),
}


def specs() -> str:
    """Return the page of all that a SPEC can name."""
    parts = [
        "A SPEC names a policy, predictor, adjuster or bounder and its keys: `NAME`, `NAME:key=value,key=value` or "
        "`NAME(key=value,key=value)`. A value may be a SPEC in parentheses: `easy:adjustment=percentile(key=user)`. "
        "Every run records its SPECs with all keys spelled out. On a terminal: `shadowtime replay --list NAME`.\n"
    ]
    for option, registry in REGISTRIES.items():
        title, flags, meaning = OPTIONS[option]
        flag, comma, rest = flags.partition(",")
        parts.append(f"## {title}\n")
        parts.append(f"`{flag}`{comma}{rest}: {meaning[0].lower()}{meaning[1:]} The default is `{DEFAULTS[option]}`.\n")
        classes = dict(sorted(registry.classes.items()))
        with_keys = [kind.Settings.model_fields for kind in classes.values() if kind.Settings.model_fields]
        common = {
            name: field
            for name, field in with_keys[0].items()
            if all(name in fields and repr(fields[name]) == repr(field) for fields in with_keys)
        }
        if option == "policy":
            parts.append(
                f"`best` is what the project recommends: `{RECOMMENDED['best']}`. Keys behind it replace those.\n"
            )
        if common:
            parts.append(f"Keys of all {'policies' if option == 'policy' else f'but `{DEFAULTS[option]}`'}:\n")
            nested = [
                (
                    f"`{option}`",
                    f"`{DEFAULTS[option]}`",
                    "SPEC",
                    f"{OPTIONS[option][2]} It may be a SPEC in parentheses.",
                )
                for option in registry.common
            ]
            parts.append(table(KEYS, [*nested, *(key_row(name, field) for name, field in common.items())]))
        if option == "policy":
            parts.append(
                "The last five have [no effect on the decisions of some policies]"
                "(../algorithms.md#uses-of-an-adjusted-request).\n"
            )

        for name, kind in classes.items():
            fields = {key: field for key, field in kind.Settings.model_fields.items() if key not in common}
            parts.append(f"### `{name}`\n")
            parts.append(sentence((kind.__doc__ or "").partition("\n\n")[0]) + "\n")
            if fields:
                parts.append(table(KEYS, [key_row(*pair) for pair in fields.items()]))

    return page("SPECs and their keys", *parts)


def metrics() -> str:
    """Return the page of all metrics."""

    def rows(chosen: Iterable[Metric]) -> list[tuple[str, ...]]:
        return [
            (
                f"`{metric.name}`",
                ", ".join(f"`{label}`" for label in metric.labels),
                metric.unit,
                sentence(metric.meaning),
            )
            for metric in chosen
        ]

    head = ("metric", "labels", "unit", "meaning")
    health = [metric for metric in METRICS if metric not in RESULTS]
    return page(
        "Metrics",
        "`share` is in 0 to 1; the unit `1` counts things. A name that ends in `_total` is a sum that only grows.\n",
        "## Results of a run\n",
        "`shadowtime serve metrics` writes them to VictoriaMetrics in the time of the log. All have the labels "
        f"{', '.join(f'`{label}`' for label in RUN)} beside their own.\n",
        table(head, rows(RESULTS)),
        "## Health of the processes\n",
        "Scraped from `/metrics` of each process, in the time of the scrape.\n",
        table(head, rows(health)),
    )


def settings() -> str:
    """Return the page of all settings."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name, field in Settings.model_fields.items():
            default = "" if field.default in (None, "") else f"`{field.default}`"
            kinds = values(field.annotation, field.metadata)
            meaning = sentence(field.description or "")
            yield f"`--{name.replace('_', '-')}`", f"`SHADOWTIME_{name.upper()}`", default, kinds, meaning

    return page(
        "Settings",
        "Of everything that talks to Kafka, Redis, VictoriaMetrics or Grafana: workers, readers, and replays over "
        "Kafka. A flag wins over the environment, the environment over the "
        "[settings file of a role](../access.md#secrets). A replay takes them as `--set NAME=VALUE`, as in "
        "`--set kafka-bootstrap=10.0.0.5:9092`. `shadowtime settings` shows the values in force; secrets are hidden.\n",
        table(("flag", "environment", "default", "values", "meaning"), rows()),
    )


def frames() -> str:
    """Return the page of the columns and scores of a result in the Python interface."""
    reasons = [Start, Kill, *get_args(get_args(Reason)[0])]
    further = {
        name: [model.__name__ for model in reasons if name in model.model_fields]
        for model in reasons
        for name in model.model_fields
        if name not in ("kind", "reason")
    }
    parts = [
        "A result of `shadowtime.replay` has two frames and scores ([From Python](../api.md)). Times are in "
        "seconds, shares in 0 to 1.\n",
        "## `.jobs`\n",
        "A row for each ended job.\n",
        table(("column", "meaning"), ((f"`{name}`", _linked(text)) for name, text in JOB_COLUMNS.items())),
        "## `.decisions`\n",
        "A row for each start and kill, in order. The last columns are missing in rows whose reason lacks them.\n",
        table(
            ("column", "meaning"),
            [
                *((f"`{name}`", sentence(text)) for name, text in DECISION_COLUMNS.items()),
                *((f"`{name}`", f"Of {', '.join(f'`{kind}`' for kind in kinds)}.") for name, kinds in further.items()),
            ],
        ),
        "## `.scores`\n",
        sentence((Scores.__doc__ or "").partition("\n\n")[2]) + "\n",
    ]
    for name, field in Scores.model_fields.items():
        models = [
            part for part in _parts_of(field.annotation) if isinstance(part, type) and issubclass(part, FrozenModel)
        ]
        for model in models:
            several = " (one for each)" if "tuple" in str(field.annotation) else ""
            parts.append(f"### `.scores.{name}`{several}\n")
            parts.append(sentence((model.__doc__ or "").replace("\n\n", " ")) + "\n")
            parts.append(
                table(
                    ("field", "type"), ((f"`{key}`", _type_of(of.annotation)) for key, of in model.model_fields.items())
                )
            )
    return page("Columns and scores", *parts)


def packages() -> str:
    """Return the page of all packages."""
    return page(
        "Packages",
        "The lowest packages come first. A package may also import its own parts, the package around it, and the "
        "modules that lie in `shared/` itself. [Architecture](../architecture.md) has the rules.\n",
        table(("package", "modules", "what it is", "imports"), rows()),
    )


def _linked(text: str) -> str:
    return sentence(
        text.replace("(algorithms.md#bounded-slowdown)", "([rule](../algorithms.md#bounded-slowdown))")
    ).replace("\\[rule]", "[rule]")


def _parts_of(annotation: Any) -> Iterator[Any]:
    """Yield an annotation, and all annotations within it."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts_of(part)


def _type_of(annotation: Any) -> str:
    """Return the type of a field in words."""
    kinds = [part for part in _parts_of(annotation) if isinstance(part, type) and not get_args(part)]
    names = {int: "whole number", float: "number", str: "text", bool: "yes or no"}
    words = list(dict.fromkeys(names.get(kind, f"`{kind.__name__}`") for kind in kinds if kind is not type(None)))
    several = "several: " if "tuple" in str(annotation) else ""
    return several + " or ".join(words) + (", or None" if type(None) in kinds else "")


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file."""
    return {
        "commands.md": commands(),
        "specs.md": specs(),
        "metrics.md": metrics(),
        "settings.md": settings(),
        "frames.md": frames(),
        "packages.md": packages(),
    }


def architecture() -> str:
    """Return docs/architecture.md with today's drawing of the phases of a run."""
    return between(PAGE.read_text(), "phases", phases())


def between(page: str, name: str, text: str) -> str:
    """Return a page with a text between its marks of this name."""
    before, begin, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    return f"{before}{begin}\n{text}\n{end}{after}"


def phases() -> str:
    """Return a drawing of the phases of a run that a worker holds."""
    lines = []
    for phase, following in TRANSITIONS.items():
        for at, (after, why) in enumerate(following.items()):
            lines.append(f"{'' if at else phase.value:<11} ──▶ {after.value:<11}   {why}")
        if not following:
            lines.append(f"{phase.value:<11} ──■ {'':<11}   for good, until `shadowtime rebuild`")

    return "\n".join(["```text", *lines, "```\n"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    PAGE.write_text(architecture())
