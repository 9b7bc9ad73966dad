"""The rules of the tree: imports, faces, names, topics, sizes."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from shadowtime.__main__ import COMMANDS
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.stages import Stage, topics
from tests.repository.tree import PRODUCT, files, name, nodes

FOLDERS = (*PRODUCT, "stack")
SERVICES = sorted(stage.name for stage in STAGES)

WORLD = {"aiohttp", "aiokafka", "faust", "redis", "time", "random"}
"""Libraries that do I/O, read a clock or draw chance."""

MEETS_THE_WORLD = {"io", "processes", "streaming"}
"""Names of packages that may import them. `stack/` runs servers and is apart."""

CLOCKS_AND_CHANCE = {"datetime", "secrets", "uuid"}

MOST, FEWEST = 15, 3
"""Modules of a folder; a package counts as one in the folder around it."""

SMALL = 80
"""Lines below which a module joins the only one that imports it, if that stands beside it."""


def package_files() -> list[Path]:
    """Return the files of the package; `shadowtime/` links to the folders, so each is named once."""
    own = list((ROOT / "shadowtime").glob("*.py"))
    return files(*FOLDERS, "shadowtime/testing") + own


def dotted(path: Path) -> str:
    """Return the name by which a file is imported.

    >>> dotted(ROOT / "services" / "pipeline.py"), dotted(ROOT / "shadowtime" / "__init__.py")
    ('shadowtime.services.pipeline', 'shadowtime')
    """
    inner = name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return inner if inner.partition(".")[0] == "shadowtime" else f"shadowtime.{inner}"


MODULES = {dotted(path): path for path in package_files()}
PACKAGES = {module for module, path in MODULES.items() if path.name == "__init__.py"}


def imports(path: Path) -> Iterator[str]:
    """Yield the full name of every module, and of every name in one, that a file imports."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages(path: Path) -> set[str]:
    """Return what a file imports from: libraries, and the project's own folders by their names."""
    return {each.removeprefix("shadowtime.").partition(".")[0] for each in imports(path)}


def own_imports(module: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of the project's own; the name of a module that is imported is empty."""
    for node in nodes(MODULES[module]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full, "") if full in MODULES else (node.module, alias.name)


def deepest(importer: str, imported: str) -> str:
    """Return how far a module may name another: one step below the package that both are in.

    The folders of the repository are packages only of packages, so from outside one names `shadowtime.FOLDER.PACKAGE`.

    >>> deepest("shadowtime.replayer.api.api", "shadowtime.services.scheduler.kernels.conservative_plan")
    'shadowtime.services.scheduler'
    >>> deepest("shadowtime.services.scheduler.tuned.policy", "shadowtime.services.scheduler.kernels.conservative_plan")
    'shadowtime.services.scheduler.kernels'
    """
    own = importer if importer in PACKAGES else importer.rpartition(".")[0]
    shared = 0
    for mine, theirs in zip(own.split("."), imported.split("."), strict=False):
        if mine != theirs:
            break
        shared += 1
    return ".".join(imported.split(".")[: max(3, shared + 1)])


def test_imports_are_found() -> None:
    assert "shadowtime.services.scheduler.policies.Easy" in set(imports(ROOT / "services/scheduler/registry.py"))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_another_package_is_imported_by_its_face(module: str) -> None:
    if module.startswith("shadowtime.testing") or module in PACKAGES:
        return
    past = {
        f"{imported}: {name_ or 'the module'}"
        for imported, name_ in own_imports(module)
        if len(imported.split("."))
        > len(deepest(module, imported).split(".")) + (not name_ and imported not in PACKAGES)
    }
    assert not past, f"{module} imports past a face: {past}"


def test_a_public_class_name_exists_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, path in MODULES.items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert not {class_name: modules for class_name, modules in homes.items() if len(modules) > 1}


def test_modules_that_docstrings_name_are_there() -> None:
    named = re.compile(r"`((?:services|shared|replayer|dashboards)(?:\.\w+)+)`")
    for path in package_files():
        for module in named.findall(path.read_text()):
            inner = f"shadowtime.{module}"
            assert {inner, inner.rpartition(".")[0]} & MODULES.keys(), (
                f"{name(path)} names {module}, which is not there"
            )


def test_no_name_of_a_lazy_face_is_that_of_a_module() -> None:
    """Of a lazy face: an import of the module would put it in the place of what the face hands on."""
    for package in PACKAGES:
        handed_on = {exported for _, exported in own_imports(package) if exported}
        if "lazy_exports" not in handed_on:
            continue
        assert not {each for each in handed_on if f"{package}.{each}" in MODULES}, package


@pytest.mark.parametrize("package", sorted(PACKAGES - {"shadowtime"}))
def test_a_face_has_what_it_names(package: str) -> None:
    face = import_module(package)
    for imported, exported in own_imports(package):
        exported_name = exported or imported.rpartition(".")[2]
        if imported != "shadowtime.shared.lazy":
            assert getattr(face, exported_name) is not None


@cache
def bound_by(module: str) -> set[str]:
    """Return the names that a module binds by something else than an import, or lists as its own."""
    found: set[str] = set()
    for node in nodes(MODULES[module]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
            if node.id == "__all__":
                found.update(import_module(module).__all__)
    return found


def test_only_faces_hand_on_what_they_import() -> None:
    handed_on = {
        f"{module}: {imported}.{exported}"
        for module in MODULES
        for imported, exported in own_imports(module)
        if exported and imported not in PACKAGES and exported not in bound_by(imported)
    }
    assert not handed_on


def test_no_circle_on_any_floor() -> None:
    """Between the parts of each package imports go one way, also those for types only, and those in functions."""
    for package in {"shadowtime", *PACKAGES}:
        arrows: dict[str, set[str]] = defaultdict(set)
        for module in MODULES:
            mine = part_of(package, module)
            if mine is not None:
                theirs = {part_of(package, imported) for imported, _ in own_imports(module)} - {None, mine}
                arrows[mine] |= {each for each in theirs if each is not None}
        TopologicalSorter(arrows).prepare()


def part_of(package: str, module: str) -> str | None:
    """Return the module or package of a package that a module is, or is in; None if it is outside, or the face."""
    if not module.startswith(f"{package}."):
        return "__init__" if package == module == "shadowtime" else None
    return module.removeprefix(f"{package}.").partition(".")[0]


def test_folders_are_one_idea() -> None:
    """A folder has 3 to 15 modules."""
    inside: Counter[str] = Counter()
    for module in MODULES:
        if module.endswith("__main__"):
            continue
        inside[module.rpartition(".")[0]] += 1
    modules = Counter(module.rpartition(".")[0] for module in MODULES if module not in PACKAGES)
    assert {folder: count for folder, count in modules.items() if count > MOST} == {}
    assert {folder: count for folder, count in inside.items() if folder and count < FEWEST} == {}


def test_a_small_module_of_one_importer_joins_it() -> None:
    importers: dict[str, set[str]] = defaultdict(set)
    for module in set(MODULES) - PACKAGES:
        for imported, _ in own_imports(module):
            importers[imported].add(module)
    exported = {imported for package in PACKAGES for imported, _ in own_imports(package)}
    entries = {f"shadowtime.{module}" for module in COMMANDS.values()}
    entries.add("shadowtime.dashboards.generate")  # its library is for developers; `dashboards push` goes without
    stubs = {
        module: importer
        for module, (importer, *others) in importers.items()
        if not others
        and module not in PACKAGES | exported | entries
        and importer.rpartition(".")[0] == module.rpartition(".")[0] != "shadowtime"
        and len(MODULES[module].read_text().splitlines()) < SMALL
    }
    assert stubs == {}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_never_imports_another(service: str) -> None:
    for path in files(f"services/{service}"):
        others = {each.split(".")[2] for each in imports(path) if each.startswith("shadowtime.services.")} - {service}
        assert not others, f"{name(path)} imports {others}"


@pytest.mark.parametrize("service", SERVICES)
def test_algorithms_know_nothing_of_brokers(service: str) -> None:
    for path in files(f"services/{service}"):
        found = {each for each in imports(path) if MEETS_THE_WORLD & set(each.split("."))}
        assert not found, f"{name(path)} imports {found}"


BELOW = {
    "shared": set(),
    "services": {"shared"},
    "dashboards": {"shared"},
    "replayer": {"shared", "services"},
    "stack": {"shared", "services", "replayer"},
}
"""Which folders each may import."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_import_downwards(folder: str) -> None:
    for path in files(folder):
        found = packages(path) & {*FOLDERS, "tests"} - {folder}
        assert found <= BELOW[folder], f"{name(path)} imports {found - BELOW[folder]}"


def test_imports_name_the_package() -> None:
    """Imported as `services.pipeline`, a module would be there twice."""
    for path in files(*FOLDERS, "tests", "shadowtime"):
        found = {each.partition(".")[0] for each in imports(path)} & set(FOLDERS)
        assert not found, f"{name(path)} imports {found}"


def test_only_packages_of_that_name_meet_the_world() -> None:
    for path in files(*PRODUCT):
        if not MEETS_THE_WORLD & set(path.relative_to(ROOT).parent.parts):
            found = packages(path) & WORLD
            assert not found, f"{name(path)} imports {found}"


def test_time_and_chance_are_arguments() -> None:
    for path in files("services", "shared"):
        parts = set(path.relative_to(ROOT).parent.parts)
        if not MEETS_THE_WORLD & parts and "accounting" not in parts:  # which reads dates
            found = packages(path) & CLOCKS_AND_CHANCE
            assert not found, f"{name(path)} imports {found}"


def test_kernels_sort_in_bounded_time() -> None:
    """The quicksort of numba, its default, takes O(n²) for some orders: 0.13 s for 49,000 ends of running jobs."""
    seen = 0
    for path in files(*PRODUCT):
        for function in (node for node in nodes(path) if isinstance(node, ast.FunctionDef)):
            if not {"kernel", "inlined"} & {ast.unparse(decorator) for decorator in function.decorator_list}:
                continue
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                called = ast.unparse(call.func)
                where = f"{name(path)}: {function.name}: {ast.unparse(call)}"
                assert called != "np.sort", where
                assert not called.endswith(".sort"), where
                if called == "np.argsort":
                    seen += 1
                    assert [ast.unparse(key.value) for key in call.keywords if key.arg == "kind"] == ["'mergesort'"], (
                        where
                    )
    assert seen > 10


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
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "opened"
    }
    assert read & every == OPENINGS.get(service, set())


def test_product_imports_no_tests() -> None:
    for path in files(*FOLDERS, "shadowtime"):
        assert "tests" not in packages(path), name(path)
        if path.parent.name != "testing":
            assert "testing" not in packages(path), name(path)
            assert not {"pytest", "hypothesis"} & packages(path), name(path)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_one_word_per_stage(stage: Stage) -> None:
    assert (ROOT / "services" / stage.name / "handler.py").is_file()
    assert (ROOT / "tests" / "unit" / "services" / stage.name).is_dir()
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


def test_no_name_without_a_meaning() -> None:
    meaningless = {"utils", "util", "common", "manager", "helpers", "helper", "misc"}
    assert not {name(path) for path in files(*FOLDERS, "tests") if path.stem in meaningless}


def test_no_trace_but_the_bundled_one() -> None:
    traces = {
        name(path)
        for path in ROOT.rglob("*.swf*")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    }
    assert traces == {"replayer/bundled.swf.gz"}
