"""What README and docs tell people to type: every command runs, or is at least understood word by word."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from shadowtime.__main__ import GROUPS
from shadowtime.replayer.campaign.logs import ARCHIVE
from shadowtime.replayer.logs.swf import read_swf, write_swf
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.sweep.ranges import specs_of
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import configure
from shadowtime.shared.accounting.slurm.head import COMMAND
from shadowtime.shared.cli.command_line import application
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.streaming.settings import Settings, read_settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.__main__ import BENCHMARKS
from tests.support.feeding import feed
from tests.support.patience import PATIENCE
from tests.support.pbs_sample import LOG as PBS
from tests.support.slurm_samples import NODES, SACCT
from tests.support.workers import Workers

HISTORY = {"CHANGELOG.md"}
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name not in HISTORY and path.parent.name != "plugin-example"  # tests/repository/test_plugin_example.py
}
OLD_FORMS = r"-m (replayer|services|stack|dashboards)\b|\bservices (ask|live|metrics|rebuild|topics|watch)\b"

EMBEDDED = {
    *("replay", "compare", "check", "check-schedule", "convert", "list", "campaign", "reproduce", "sweep", "plan"),
    *("generate", "search-templates", "settings", "asyncapi"),
}
"""Sub-commands that run in one process, on small logs."""
STREAMED = {"replay", "watch", "ask"}
"""Sub-commands that run against servers and workers."""
SETTINGS = {f"--{name.replace('_', '-')}" for name in Settings.model_fields}
"""Options of every command that takes settings."""
OPTIONS_OF_OTHERS = {"--help", "--yes", "--only-binary"}
"""Those of every command, of `shadowtime stack install`, which hands them on, and of pip."""

PARSED = {
    "live": "serves until it is ended: tests/integration/live",
    "serve": "serves until it is ended: every test with workers",
    "rebuild": "needs its stage stopped: tests/integration/faults",
    "remove": "needs a run that is over: tests/integration/removal",
    "topics": "tests/integration/faults/test_rights.py",
    "stack": "takes the ports of this machine: tests/integration/stack",
    "dashboards": "needs a Grafana: tests/integration/dashboards; writes into the checkout: test_generate.py",
}
"""Sub-commands whose words are only parsed here, and why or where they run.

Targets of `make` are run dry: they install, test or start everything. Modules of benchmarks are parsed, as they take
minutes to hours on archived logs; and those of `shadowtime.stack`, which ask registries.
"""

sys.path.append(str(ROOT / "docs"))  # generate.py imports what is beside it
command_of = runpy.run_path(str(ROOT / "docs" / "generate.py"))["command_of"]


def lines_of(page: str) -> Iterator[str]:
    """Yield the lines of code blocks, fenced or indented; those that go on behind a backslash as one."""
    language: str | None = None
    for line in page.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            language = None if language is not None else line.strip(" `")
        elif (language is not None and language in ("", "sh", "bash", "console")) or (
            language is None and line.startswith("    ")
        ):
            yield line.strip()


def words_of(line: str) -> list[str]:
    """Return the words of a command that is to be checked; none, if the line is no such command."""
    if not re.search(r"(^|[ /])(shadowtime|make|python3?) ", line):
        return []
    words = [word for word in shlex.split(line, comments=True) if word not in ("&", "…")]
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    if words[:3] == ["docker", "compose", "run"] and "shadowtime" in words:
        words = words[words.index("shadowtime") :]
    if words:
        words[0] = words[0].removeprefix(".venv/bin/").replace("python3", "python")
    return words if words and words[0] in ("shadowtime", "make", "python") else []


def commands(first: str) -> list[tuple[str, ...]]:
    """Return all different commands of all pages whose first word is this one."""
    found = (tuple(words_of(line)) for page in PAGES.values() for line in lines_of(page))
    return list(dict.fromkeys(words for words in found if words and words[0] == first))


def named(words: tuple[str, ...]) -> str:
    return " ".join(words[1:])[:80]


SHADOWTIME = commands("shadowtime")
OVER_KAFKA = [each for each in SHADOWTIME if each[1] in STREAMED - {"replay"} or "kafka" in each]
IN_PROCESS = [each for each in SHADOWTIME if each[1] in EMBEDDED and each not in OVER_KAFKA]


def test_there_are_commands() -> None:
    assert len(IN_PROCESS) >= 10
    assert len(OVER_KAFKA) >= 3
    assert {each[1] for each in SHADOWTIME} <= EMBEDDED | STREAMED | PARSED.keys()


@pytest.mark.parametrize("page", PAGES)
def test_a_shell_reads_each_command_as_it_stands(page: str) -> None:
    """A SPEC with parentheses or braces needs quotes; without them, bash reports a syntax error."""
    for line in PAGES[page].splitlines():
        if re.match(r"(\$ )?shadowtime [a-z]", line):
            bare = re.sub(r"'[^']*'|\"[^\"]*\"|\s#.*", "", line)
            assert not re.search(r"[(){}<>*;]", bare), line


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_a_command_of_before(page: str) -> None:
    assert not re.search(OLD_FORMS, PAGES[page])


def parse(words: tuple[str, ...]) -> None:
    """Parse the words of a `shadowtime` command; raises if it does not know one."""
    command, rest = command_of(words[1]), list(words[2:])
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    context = command.make_context(words[1], rest)
    if context.args:
        read_settings(context.args)
    policies = context.params.get("policy") or ()
    for policy in [policies] if isinstance(policies, str) else policies:
        for spec in specs_of(policy) if words[1] == "sweep" else [policy]:
            configure(spec)


@pytest.mark.parametrize("words", SHADOWTIME, ids=named)
def test_every_word_of_a_command_is_known(words: tuple[str, ...]) -> None:
    parse(words)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small log under every name of a log that a command has."""
    folder = tmp_path_factory.mktemp("logs")
    written = folder / "LOG.swf"
    options = ["--jobs", "300", "--processors", "64", "--seed", "1", "--output", str(written)]
    command_of("generate").main(options, standalone_mode=False)
    written = written.rename(folder / "LOG")
    for words in SHADOWTIME:
        for word in words[2:]:
            if ".swf" in word and words[1] != "generate":
                (folder / word.partition("@")[0]).write_bytes(written.read_bytes())
    (folder / "sacct.txt").write_text(SACCT.read_text())
    (folder / "nodes.txt").write_text(NODES.read_text())
    (folder / "pbs.txt").write_text(PBS)
    (folder / "server_priv" / "accounting").mkdir(parents=True)
    (folder / "server_priv" / "accounting" / "20261122").write_text(PBS)
    (folder / "jobs.csv").write_text("queued_at,started_at,ended_at,time_limit,cores,owner\n100,110,170,60,4,eve\n")
    (folder / "traces").mkdir()
    for each in ARCHIVE.values():
        (folder / "traces" / f"{each.file}.swf.gz").write_bytes(written.read_bytes())
    (campaign,) = re.findall(r"```toml\n(.*?)```", PAGES["docs/campaigns.md"], re.DOTALL)
    (folder / "mine.toml").write_text(campaign)
    (folder / "campaigns").symlink_to(ROOT / "campaigns")
    command_of("replay").main(["--jobs", "30", "--json", str(folder / "result.json")], standalone_mode=False)
    return folder


def truncate(words: tuple[str, ...]) -> list[str]:
    """Return a command that takes seconds: fewer jobs, whatever else."""
    few = {
        "replay": ["--jobs", "200"],
        "compare": ["--jobs", "200"],
        "campaign": ["--first", "30", "--workers", "2"],
        "reproduce": ["--first", "30", "--workers", "2"],
        "sweep": ["--first", "30", "--workers", "2"],
        "plan": ["--first", "30", "--copies", "0", "--policy", "easy"],
        "generate": ["--jobs", "200"],
        "search-templates": ["--generations", "1", "--population", "4"],
    }
    return [*words[2:], *([] if words[2:] and words[2].endswith(".json") else few.get(words[1], []))]


FIRST = {words[1]: words for words in reversed(IN_PROCESS)}
"""The first command of the pages for each sub-command. The others run in nightly."""
LONG = {"campaign", "reproduce", "search-templates", "sweep"}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=() if words == FIRST[words[1]] and words[1] not in LONG else pytest.mark.nightly)
        for words in IN_PROCESS
    ],
    ids=named,
)
def test_a_command_in_one_process_runs(words: tuple[str, ...], logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs)
    command_of(words[1]).main(truncate(words), standalone_mode=False)
    for option, word in pairwise(words):
        if option in ("--json", "--report", "-o"):
            assert (logs / word).is_file()


@pytest.mark.nightly
def test_a_command_on_the_stream_runs(kafka: Kafka, redis_server: Redis, logs: Path, tmp_path: Path) -> None:
    """First come a replay, with bounds on the waits of the cluster that is asked about, and the run of feeding.md."""
    write_swf(tmp_path / "kth.swf", *generate(jobs=60, processors=64, seed=1))
    with Workers(kafka, redis_server, tmp_path) as workers:

        def run(*words: str) -> None:
            command = [sys.executable, "-m", "shadowtime", *words]
            environment = {**workers.environment, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE
            )
            assert done.returncode == 0, f"{words}: {done.stderr}\n{workers.logs()}"

        run("replay", "kth.swf", "--transport", "kafka", "--run", "kth", "--wait-bound", "bmbp:publish=plain")
        feed(tmp_path, kafka.address)
        few = {"replay": ["--jobs", "30"], "watch": ["--beginning", "--count", "1"]}
        with ThreadPoolExecutor() as pool:
            calls = [
                pool.submit(run, *(word.replace("1000", "max") for word in words[1:]), *few.get(words[1], []))
                for words in OVER_KAFKA
                if words[1] != "ask" or "--cluster" in words
            ]
        for call in calls:
            call.result()


ELSEWHERE = ("README.md", "docs/getting-started.md", "docs/jupyterhub.md")
"""Pages whose Python other tests run."""


@pytest.mark.parametrize(
    "code",
    [
        code
        for name, page in PAGES.items()
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if "asyncio" not in code and name not in ELSEWHERE
    ],
    ids=lambda code: code.splitlines()[0][:80],
)
def test_python_runs(code: str) -> None:
    """The subscriber and the Python of two pages are run by tests/repository/test_readme.py, that of a hub by a hub."""
    exec(code, {})


def test_the_log_made_of_accounting_records_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGES["docs/compare-your-log.md"], re.DOTALL)
    exec(code, {})
    path = tmp_path / "mine.swf"
    path.write_text(capsys.readouterr().out)
    log = prepare(read_swf(path))
    assert log.processors == 64
    assert log.columns["run_time"].tolist() == [3590, 60, 100]
    assert log.columns["requested_time"].tolist() == [7200, 600, 900]
    assert len(set(log.columns["user_id"].tolist())) == 2


def test_what_sacct_is_asked_for_is_what_is_read() -> None:
    assert COMMAND in PAGES["docs/accounting.md"]


def test_a_job_without_a_field_that_a_replay_needs_is_left_out(tmp_path: Path) -> None:
    needed = re.findall(r"^\| ([\d, or]+) \|.*\| yes \|$", PAGES["docs/compare-your-log.md"], re.MULTILINE)
    assert needed == ["1, 2", "4", "5 or 8", "9"]
    header, table = generate(jobs=3, processors=8, seed=1)
    for number, fields in enumerate(needed):
        changed = table.copy()
        changed[1, [int(each) - 1 for each in re.findall(r"\d+", fields) if each != "1"]] = -1
        write_swf(tmp_path / f"{number}.swf", header, changed)
        log = prepare(read_swf(tmp_path / f"{number}.swf"))
        assert (len(log), sum(log.skipped.values())) == (2, 1)


@pytest.mark.parametrize("words", commands("make"), ids=named)
def test_make_knows_its_targets(words: tuple[str, ...]) -> None:
    subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, check=True)


@cache
def help_of(module: str) -> str:
    environment = {**os.environ, "COLUMNS": "200"}
    call = [sys.executable, "-m", module, "--help"]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.parametrize("words", commands("python"), ids=named)
def test_a_module_takes_what_it_is_told(words: tuple[str, ...]) -> None:
    assert words[1] == "-m" or (ROOT / words[1]).is_file()
    module, arguments = words[2], list(words[3:])
    assert find_spec(module) is not None
    if module == "tests.benchmarks":
        assert set(arguments) <= BENCHMARKS.keys()
    elif module.startswith("tests.benchmarks."):
        typer.main.get_command(application(import_module(module).main)).make_context(module, arguments)
    elif module.startswith("shadowtime."):
        assert {each for each in arguments if each.startswith("--")} <= set(help_of(module).split())


@pytest.mark.parametrize("page", PAGES)
def test_no_empty_line_is_within_a_table(page: str) -> None:
    """The rows below it would be shown as text."""
    outside = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^\n(\|.*)\n(?!\|[ :-]*-)", outside, re.MULTILINE) == []


def spans() -> Iterator[tuple[str, str]]:
    for name, page in PAGES.items():
        outside = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        for span in re.findall(r"`([^`\n]+)`", outside):
            yield name, span


def options_of(command: Any) -> set[str]:
    """Return the options of a command and of all commands within."""
    within = getattr(command, "commands", {})
    return {option for each in command.params for option in (*each.opts, *each.secondary_opts)}.union(
        *map(options_of, within.values())
    )


def test_options_within_sentences_are_known() -> None:
    commands = {name for group in GROUPS.values() for name in group}
    known = set.union(*(options_of(command_of(name)) for name in commands))
    known |= SETTINGS
    told = {(page, span.split()[0]) for page, span in spans() if span.startswith("--")}
    assert len(told) > 50
    assert {each for each in told if each[1] not in known | OPTIONS_OF_OTHERS} == set()


def test_commands_within_sentences_are_known() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page, span in spans():
        first, *rest = span.split()
        if first == "make" and rest:
            assert rest[0] in targets, f"{page}: {span}"
        elif first == "shadowtime" and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            command = command_of(rest[0])
            known = options_of(command) | {"--help"}
            if command.context_settings.get("ignore_unknown_options"):
                known |= SETTINGS
            assert {each for each in rest if each.startswith("--")} <= known, f"{page}: {span}"
        elif span.startswith("python -m tests."):
            assert find_spec(rest[1]) is not None, f"{page}: {span}"


@pytest.mark.nightly
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 15
    for path in pages:
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"']?([^\"' >]+)", path.read_text())
        assert loaded
        assert not [each for each in loaded if re.match(r"(https?:)?//", each)], path
        assert 'class="mermaid"' not in path.read_text(), "the theme would load mermaid.js"


def test_each_promise_of_security_names_tests_that_exist() -> None:
    held = [line.split("|")[-2] for line in PAGES["SECURITY.md"].splitlines() if line.startswith("| **")]
    assert len(held) == 18
    for cell in held:
        named = re.findall(r"`([^`]+)`", cell)
        assert named
        assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
