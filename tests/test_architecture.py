"""The rules of the tree: imports, names, topics, sizes."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.stages import topics
from shadowtime.shared.stages.stage import Stage

PRODUCT = ("services", "shared", "replayer")
SERVICES = sorted(stage.name for stage in STAGES)

WIRING = {"services/pipeline.py", "services/catalogue.py"}
WORLD = {"aiohttp", "aiokafka", "faust", "redis"}
"""Libraries that talk to Kafka, Redis or HTTP."""
MEETS_THE_WORLD = (
    "shared/streaming/",
    "services/ask/",
    "services/live/",
    "services/metrics/",
    "services/watch/",
    "services/processes/command_line.py",
    "services/processes/worker_start.py",
    "replayer/io/kafka_run.py",
    "replayer/io/streamed.py",
    "services/follower/io/follower.py",
    "services/follower/io/process.py",
    "services/follower/io/process.py",
    "services/follower/io/commands.py",
    "services/follower/io/http_inbox.py",
    "services/follower/io/mirrored.py",
    "services/follower/io/slurm.py",
    "services/follower/io/slurm_commands.py",
    "services/follower/io/slurm_rest.py",
    "services/follower/io/rest_client.py",
    "services/follower/io/tailed.py",
    "services/follower/io/slurm.py",
    "services/shadows/io/pages.py",
    "services/shadows/io/source.py",
    "services/shadows/io/process.py",
    "services/shadows/io/source.py",
)
"""Where time passes and others answer: `shared/streaming/`, the readers of the stream, the entry points."""
CLOCKS_AND_CHANCE = {"time", "datetime", "random", "secrets", "uuid"}


def files(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found
    return found


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[str]:
    """Yield the full name of every module, and of every name in one, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages(path: Path) -> set[str]:
    """Return what a file imports from: libraries, and the project's own folders by their names."""
    return {each.removeprefix("shadowtime.").partition(".")[0] for each in imports(path)}


def test_imports_are_found() -> None:
    assert "shadowtime.services.scheduler.policies.easy.Easy" in set(
        imports(ROOT / "services" / "scheduler" / "policies.py")
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_never_imports_another(service: str) -> None:
    for path in files(f"services/{service}"):
        others = {each.split(".")[2] for each in imports(path) if each.startswith("shadowtime.services.")} - {service}
        assert not others, f"{name(path)} imports {others}"


@pytest.mark.parametrize("service", SERVICES)
def test_algorithms_know_nothing_of_brokers(service: str) -> None:
    places = [place.removesuffix(".py").rstrip("/").replace("/", ".") for place in MEETS_THE_WORLD]
    outside = tuple(f"shadowtime.{place}." for place in places)
    for path in files(f"services/{service}"):
        found = {each for each in imports(path) if f"{each}.".startswith(outside)}
        assert not found, f"{name(path)} imports {found}"


def test_only_the_wiring_knows_all_services() -> None:
    for path in files("services"):
        if path.parent.name in SERVICES:
            continue
        inner = {each.split(".")[2] for each in imports(path) if each.startswith("shadowtime.services.")} & set(
            SERVICES
        )
        assert not inner or name(path) in WIRING, f"{name(path)} imports {inner}"


def test_shared_imports_nothing_above_it() -> None:
    for path in files("shared"):
        above = packages(path) & {"services", "replayer", "dashboards", "stack", "tests"}
        assert not above, f"{name(path)} imports {above}"


def test_imports_name_the_package() -> None:
    """Imported as `services.pipeline`, a module would be there twice."""
    folders = {*PRODUCT, "dashboards", "stack"}
    for path in files(*folders, "tests", "shadowtime"):
        found = {each.partition(".")[0] for each in imports(path)} & folders
        assert not found, f"{name(path)} imports {found}"


def test_services_import_neither_replayer_nor_dashboards() -> None:
    for path in files("services"):
        above = packages(path) & {"replayer", "dashboards", "stack", "tests"}
        assert not above, f"{name(path)} imports {above}"


OPENINGS = {
    "runtime_distribution": {"runtime"},
    "walltime_adjustment": {"adjustment"},
    "wait_bound": {"wait_bound"},
    "scheduler": {"policy"},
    "scoreboard": {"policy", "runtime"},  # names on results
}
"""Which SPECs of a run's opening each service reads; one that is not here reads none."""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_reads_its_own_spec_only(service: str) -> None:
    every = {"policy", "runtime", "adjustment", "wait_bound"}
    assert every <= set(ClusterOpened.model_fields)
    read = {
        node.attr
        for path in files(f"services/{service}")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "opened"
    }
    assert read & every == OPENINGS.get(service, set())


def test_no_circle_not_even_for_types() -> None:
    modules = {dotted(path): path for path in files(*PRODUCT, "dashboards", "stack", "shadowtime")}
    order = TopologicalSorter(
        {
            module: {found for each in imports(path) if (found := owner(each, modules)) not in (None, module)}
            for module, path in modules.items()
        }
    )
    order.prepare()
    assert "shadowtime.replayer.api.api" in {owner(each, modules) for each in imports(modules["shadowtime"])}


def dotted(path: Path) -> str:
    """Return the name by which a module is imported."""
    inner = name(path).removeprefix("shadowtime/").removesuffix(".py").removesuffix("__init__")
    return f"shadowtime/{inner}".rstrip("/").replace("/", ".")


def owner(imported: str, modules: Mapping[str, Path]) -> str | None:
    """Return the module of the project that an imported name is, or is of."""
    return next((each for each in (imported, imported.rpartition(".")[0]) if each in modules), None)


def test_product_imports_no_tests() -> None:
    for path in files(*PRODUCT, "dashboards", "stack", "shadowtime"):
        assert "tests" not in packages(path), name(path)
        if path.parent.name != "testing":
            assert "testing" not in packages(path), name(path)
            assert not {"pytest", "hypothesis"} & packages(path), name(path)


def test_only_what_meets_the_world_imports_its_libraries() -> None:
    for path in files(*PRODUCT, "dashboards"):
        if not name(path).startswith(MEETS_THE_WORLD):
            found = packages(path) & WORLD
            assert not found, f"{name(path)} imports {found}"


def test_the_report_and_grafana_know_nothing_of_each_other() -> None:
    for path in files("dashboards"):
        report = name(path).startswith("dashboards/report/")
        across = {each for each in imports(path) if each.startswith("shadowtime.dashboards.")}
        found = {each for each in across if each.startswith("shadowtime.dashboards.report.") != report}
        assert not found, f"{name(path)} imports {found}"
    for path in files("replayer"):
        found = {each for each in imports(path) if each.startswith("shadowtime.dashboards.")}
        assert all(each.startswith("shadowtime.dashboards.report.") for each in found), f"{name(path)} imports {found}"


def test_time_and_chance_are_arguments() -> None:
    for path in files("services", "shared"):
        if not name(path).startswith(MEETS_THE_WORLD):
            found = packages(path) & CLOCKS_AND_CHANCE
            assert not found, f"{name(path)} imports {found}"


def test_the_machine_reads_no_clock() -> None:
    for module in ("source", "event_order", "machine", "recorded", "embedded", "swf", "swf_text", "workload"):
        assert not packages(ROOT / "replayer" / f"{module}.py") & CLOCKS_AND_CHANCE


def test_actual_run_times_are_known_to_the_replayer_alone() -> None:
    for path in files("services", "shared"):
        assert not any(each.startswith("shadowtime.replayer") for each in imports(path)), name(path)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_one_word_per_stage(stage: Stage) -> None:
    assert (ROOT / "services" / stage.name / "handler.py").is_file()
    assert (ROOT / "tests" / "services" / stage.name).is_dir()
    assert stage.open.__module__ == f"shadowtime.services.{stage.name}.handler"


def test_every_service_is_a_stage() -> None:
    assert {stage.name for stage in STAGES} == set(SERVICES)


def test_topics_chain() -> None:
    assert STAGES[0].reads == topics.JOBS
    for before, after in pairwise(STAGES):
        assert after.reads == before.writes
    arrows = (STAGES[0].reads, *(stage.writes for stage in STAGES))
    assert len(set(arrows)) == len(arrows)
    assert arrows == topics.FLOW


def test_files_are_short() -> None:
    """One idea, one file: the longest has 250 lines, half of them at most 100."""
    lengths = {
        name(path): len(path.read_text().splitlines()) for path in files(*PRODUCT, "dashboards", "stack", "shadowtime")
    }
    assert {path: length for path, length in lengths.items() if length > 250} == {}
    assert median(lengths.values()) <= 100


def test_no_name_without_a_meaning() -> None:
    meaningless = {"utils", "util", "common", "manager", "helpers", "helper", "misc"}
    assert not {name(path) for path in files(*PRODUCT, "dashboards", "stack", "tests") if path.stem in meaningless}


def test_no_trace_but_the_bundled_one() -> None:
    traces = {
        name(path)
        for path in ROOT.rglob("*.swf*")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    }
    assert traces == {"replayer/bundled.swf.gz"}
