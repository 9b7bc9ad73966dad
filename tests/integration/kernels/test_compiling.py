"""Kernels of the cache are loaded as they are first called, and are then what numba would have made of them at once."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.kernels.arrays import Integers
from shadowtime.shared.kernels.cache import KernelCache
from shadowtime.shared.kernels.decorator import Kernel, kernel
from tests.support.kernel_processes import Told, told_in


def weighted(values: Integers, weight: float) -> int:
    total = 0
    for value in values:
        total += int(value * weight)
    return total


@kernel
def _of_one(values: Integers, weight: float) -> int:
    return int(values[0] * weight)


@kernel
def of_all(values: Integers, weight: float) -> int:
    return _of_one(values, weight)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that a process before this one has compiled."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    Kernel(weighted).load()
    return Kernel(weighted)


def test_it_is_read_as_it_is_first_called_and_not_compiled(stored: Kernel) -> None:
    assert stored(np.arange(4), 2.0) == 12
    stats = stored.load().stats
    assert (sum(stats.cache_hits.values()), sum(stats.cache_misses.values())) == (1, 0)
    assert stored(np.arange(4), 2) == 12


@pytest.mark.parametrize("arguments", [(np.arange(4), 2), (np.arange(4), np.float64(2.0)), (np.arange(4), True)])
def test_the_first_call_takes_what_any_call_takes(stored: Kernel, arguments: tuple[object, ...]) -> None:
    at_once: Any = numba.njit(numba.int64(numba.int64[::1], numba.float64))(weighted)
    assert stored(*arguments) == at_once(*arguments)


@pytest.mark.parametrize("arguments", [(np.arange(4.0), 2.0), (np.arange(4, dtype=np.int32), 2.0), ("no", 2.0), ()])
def test_other_types_are_an_error_first_and_later(stored: Kernel, arguments: tuple[object, ...]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            stored(*arguments)
    assert len(stored.load().signatures) == 1
    assert stored(np.arange(4), 2.0) == 12


def test_a_pickle_says_its_name() -> None:
    assert pickle.loads(pickle.dumps(of_all)) is of_all


def test_threads_that_call_it_first_at_once_get_the_same(stored: Kernel) -> None:
    found: list[int] = []
    together = threading.Barrier(4)

    def call() -> None:
        together.wait()
        found.append(stored(np.arange(4), 2.0))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [12] * 4


def test_ctrl_c_while_it_is_read_comes_afterwards(stored: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    cache: Any = KernelCache
    load = cache.load_overload

    def interrupted(*told: Any) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return load(*told)

    monkeypatch.setattr(KernelCache, "load_overload", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stored(np.arange(4), 2.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    assert stored(np.arange(4), 2.0) == 12


def test_a_start_loads_nothing_not_even_numba() -> None:
    program = (
        "import sys\n"
        "import shadowtime.services.pipeline\n"
        "from shadowtime.shared.kernels.decorator import MADE\n"
        "print(len(MADE), sum(kernel.loaded for kernel in MADE), 'numba' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    made, *others = done.stdout.split()
    assert int(made) > 50
    assert others == ["0", "False"]


def test_what_a_kernel_calls_is_loaded_as_it_is_compiled() -> None:
    assert of_all(np.arange(3, 9), 2.0) == 6


@pytest.mark.nightly
def test_what_a_kernel_calls_in_another_file_is_a_part_of_its_key(tmp_path: Path) -> None:
    """As after a pull that changed a callee alone: the file of the kernel is as it was."""
    package = tmp_path / "changed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "calling.py").write_text(
        "from changed.called import step, BY\n"
        "from shadowtime.shared.kernels.decorator import kernel\n\n\n"
        "@kernel\n"
        "def stepped(value: int) -> int:\n"
        "    return step(value) * BY\n"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    environment.pop("NUMBA_CACHE_DIR", None)

    def told(called: str) -> list[str]:
        (package / "called.py").write_text(
            "from shadowtime.shared.kernels.decorator import inlined, kernel\n\n" + called
        )
        script = (
            "from changed.calling import stepped\nprint(stepped(10), sum(stepped.load().stats.cache_misses.values()))"
        )
        command = [sys.executable, "-B", "-c", script]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    inlining = "BY = {}\n\n\n@inlined\ndef step(value: int) -> int:\n    return value + {}\n"
    calling = inlining.replace("inlined", "kernel")
    assert told(inlining.format(2, 1)) == ["22", "1"], "compiled"
    assert told(inlining.format(2, 1)) == ["22", "0"], "from the cache"
    assert told(inlining.format(2, 3)) == ["26", "1"], "what is compiled into it has changed"
    assert told(inlining.format(3, 3)) == ["39", "1"], "a constant has changed"
    assert told(calling.format(3, 4)) == ["42", "1"], "it calls a kernel now"
    assert told(calling.format(3, 5)) == ["45", "1"], "which has changed"
    assert told(calling.format(3, 5)) == ["45", "0"]
    assert told(calling.format(3, 4)) == ["42", "0"], "forms that other checkouts use are kept"
    shutil.copytree(tmp_path / "changed", tmp_path / "elsewhere" / "changed")
    environment["PYTHONPATH"] = f"{tmp_path / 'elsewhere'}{os.pathsep}{ROOT}"
    package = tmp_path / "elsewhere" / "changed"
    assert told(calling.format(3, 5)) == ["45", "0"], "another checkout uses the same files"


KERNELS = """
from shadowtime.shared.kernels.decorator import kernel


@kernel
def step(value: int) -> int:
    if value < 0:
        raise ValueError("below 0")
    return value * (value - 1) // 2


@kernel
def stepped(value: int) -> int:
    return 2 * step(value)


@kernel
def factorial(value: int) -> int:
    return 1 if value < 2 else value * factorial(value - 1)


@kernel
def by_name(value: int) -> int:
    return {"a": 1, "b": 2}["b"] + value
"""


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """Run lines in a process, with a cache that all such processes share, and return what it printed."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    run = told_in(tmp_path)
    return lambda lines: run(f"from kernels import *\n{lines}")


SORTING = """
import numpy as np
from shadowtime.shared.kernels import Floats, Integers, kernel


@kernel
def smallest(values: Floats) -> float:
    return np.sort(values)[0]


@kernel
def largest(values: Floats) -> float:
    return np.sort(values)[-1]
"""


SHARED_SYMBOLS = """
import pickle
from pathlib import Path
from llvmlite.binding import parse_bitcode
from shadowtime.shared.kernels.cache import DIGEST

def of_numba(file):
    payload = pickle.loads(file.read_bytes()[DIGEST:])
    functions = parse_bitcode(payload[0][2][1]).functions
    return {each.name for each in functions if not each.is_declaration and each.name.startswith("_ZN5numba")}

first, second = map(of_numba, sorted(Path(FOLDER).rglob("sorting.*.nbc")))
print(len(first) > 0, len(second) > 0, len(first & second))
"""
"""A program that prints how many of numba's own functions both kernels in the cache define."""


@pytest.mark.nightly
def test_kernels_that_two_processes_compiled_define_no_symbol_twice(told: Told, tmp_path: Path) -> None:
    """The loader would take one definition for both, and a kernel would run the code of another."""
    (tmp_path / "sorting.py").write_text(SORTING)
    for name, value in (("smallest", "1.0"), ("largest", "3.0")):
        assert told(f"import sorting, numpy\nprint(sorting.{name}(numpy.array([2.0, 1.0, 3.0])))") == value
    assert told(SHARED_SYMBOLS.replace("FOLDER", repr(str(tmp_path / "shadowtime")))) == "True True 0"


@pytest.mark.nightly
def test_what_was_loaded_is_compiled_into_a_caller(told: Told, tmp_path: Path) -> None:
    """Its code for callers is read then, though it runs already; its errors are raised in both."""
    both = (
        "hits = lambda each: [*each.load().stats.cache_hits.values()]\n"
        "print(step(5), hits(step), stepped(5), hits(stepped))\n"
        "try:\n    stepped(-1)\nexcept ValueError as error:\n    print(error)"
    )
    told("step(5)")
    assert told(both) == "10 [1] 20 []\nbelow 0", "step is loaded, stepped compiled"
    assert told(both) == "10 [1] 20 [1]\nbelow 0", "both are loaded"
    assert len(list(tmp_path.rglob("kernels.step*.nbc"))) == 2


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("factorial(5)", "120"),
        pytest.param("by_name(2)", "4", marks=pytest.mark.nightly),
        pytest.param("step(value=5)", "10", marks=pytest.mark.nightly),
    ],
)
def test_it_is_the_same_compiled_and_loaded(told: Told, call: str, found: str) -> None:
    assert [told(f"print({call})") for _ in range(2)] == [found] * 2


@pytest.mark.nightly
@pytest.mark.parametrize("at", [0, 40, -1])
def test_a_damaged_file_is_compiled_anew(told: Told, tmp_path: Path, at: int) -> None:
    told("step(5)")
    (file,) = tmp_path.rglob("kernels.step*.nbc")
    written = bytearray(file.read_bytes())
    written[at] ^= 1
    file.write_bytes(written)
    assert told("print(step(5), step.load().stats.cache_hits)") == "10 Counter()"
    assert told("print(step(5), len(step.load().stats.cache_hits))") == "10 1"
    file.write_bytes(written[:100])
    assert told("from shadowtime.shared.kernels.decorator import get_ready\nget_ready()\nprint(step(5))") == "10"


def test_what_cannot_be_kept_is_compiled_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("shadowtime.shared.kernels.cache.write_private", full)
    unkept = Kernel(weighted)
    assert [unkept(np.arange(4), 2.0) for _ in range(2)] == [12, 12]
    (told,) = caplog.messages
    assert told.endswith("cannot be stored: [Errno 28] No space left on device")


def test_all_who_may_read_in_the_folder_may_read_what_is_kept(told: Told, tmp_path: Path) -> None:
    """As in the image, where root compiles and somebody else runs; nothing half written stays."""
    told(f"import os, numba\nos.umask(0o022)\nnumba.config.CACHE_DIR = '{tmp_path}/named'\nstep(5)")
    (file,) = (each for each in (tmp_path / "named").rglob("*") if each.is_file())
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_is_kept_at_home_is_for_nobody_else(told: Told, tmp_path: Path, umask: int) -> None:
    told(f"import os\nos.umask({umask})\nstep(5)")
    (file,) = tmp_path.rglob("kernels.step*.nbc")
    assert file.stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (file.parent, file.parent.parent)} == {0o700}


class Planted:
    """A pickle that makes a folder when it is read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


def test_what_another_user_could_have_planted_is_not_run(told: Told, tmp_path: Path) -> None:
    """A pickle in the place of a kernel ran as whoever called the kernel."""
    told("step(5)")
    (file,) = tmp_path.rglob("kernels.step*.nbc")
    planted = pickle.dumps(Planted(str(tmp_path / "ran")))
    logged = "import logging, sys\nlogging.basicConfig(format='%(message)s', stream=sys.stdout, force=True)\n"
    for place, mode in ((file, 0o666), (file.parent, 0o777), (tmp_path, 0o777)):
        file.write_bytes(sha256(planted).digest() + planted)
        before = place.stat().st_mode
        place.chmod(mode)
        *warnings, printed = told(f"{logged}print(step(5))").splitlines()
        place.chmod(before)
        assert printed == "10"
        assert warnings[0].startswith("compiled kernels are not read, but compiled in memory: other users can change ")
        assert not (tmp_path / "ran").exists()

    file.write_bytes(sha256(planted).digest() + planted)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert "belongs to user 65534" in told(f"{logged}print(step(5))")
    assert not (tmp_path / "ran").exists()


@pytest.mark.nightly
def test_threads_that_compile_what_calls_kernels_do_not_wait_for_each_other(told: Told) -> None:
    """One compiles a function of its own that calls a kernel, while the other calls another kernel first."""
    assert told(
        "import threading, numba\n"
        "from shadowtime.shared.kernels.decorator import get_ready\n"
        "own = numba.njit(lambda value: 3 + step(value))\n"
        "found = []\n"
        "calls = [lambda: own(5), lambda: stepped(5), lambda: get_ready(), lambda: factorial(5)]\n"
        "threads = [threading.Thread(target=lambda call=call: found.append(call()), daemon=True) for call in calls]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join(60)\n"
        "print(sorted(map(str, found)))"
    ) == str(sorted(["13", "20", "None", "120"]))


@pytest.mark.nightly
def test_ctrl_c_while_numba_is_imported_comes_afterwards(told: Told) -> None:
    assert (
        told(
            "import os, signal\n"
            "signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
            "try:\n    step(5)\n    print('through')\n"
            "except KeyboardInterrupt:\n    print('interrupted', step(5))"
        )
        == "interrupted 10"
    )


def test_what_a_program_of_others_has_made_can_be_collected(told: Told) -> None:
    """Only a command, whose imports stay, has the collector pass over them."""
    assert told("import gc\nstep(5)\nprint(gc.get_freeze_count(), gc.isenabled())") == "0 True"


@pytest.mark.nightly
def test_no_kernel_of_the_cache_takes_what_numba_compiles_with() -> None:
    program = (
        "import sys\n"
        "import numpy as np\n"
        "import shadowtime.services.pipeline\n"
        "from shadowtime.shared.kernels.decorator import load_all\n"
        "load_all()\n"
        "print(sum(name in sys.modules for name in ('scipy.linalg', 'scipy.special', 'numba.np.arrayobj')))\n"
        "import numba\n"
        "print(numba.njit(lambda matrix: np.linalg.inv(matrix) @ matrix)(np.eye(2)).sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "2.0"]


GENERIC = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
BROUGHT = """
from pathlib import Path
from shadowtime.shared.kernels import cache, decorator
decorator.__file__ = "{folder}/decorator.py"
{before}
print(step(5), sum(step.load().stats.cache_hits.values()), len(list(Path("{folder}/shadowtime").rglob("*.nbc"))))
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "10 1 0"),
        pytest.param("decorator._GENERIC_FLAGS = {'none-has'}", "10 0 1", marks=pytest.mark.nightly),
        pytest.param("cache.FORMAT += 1", "10 0 1", marks=pytest.mark.nightly),
    ],
    ids=["it fits", "an old processor", "another version"],
)
def test_a_kernel_of_the_wheel_is_used_where_it_fits(told: Told, tmp_path: Path, before: str, expected: str) -> None:
    """It is made for many processors, and compiled anew for one that it does not fit, or by other versions."""
    assert told(f"import os\nos.environ.update({GENERIC})\nprint(step(5))") == "10"
    (tmp_path / "shadowtime" / "kernels").rename(tmp_path / "prebuilt")
    assert told(BROUGHT.format(folder=tmp_path, before=before)) == expected


@pytest.mark.nightly
def test_a_kernel_of_the_wheel_that_others_can_change_is_not_run(told: Told, tmp_path: Path) -> None:
    told(f"import os\nos.environ.update({GENERIC})\nstep(5)")
    (tmp_path / "shadowtime" / "kernels").rename(tmp_path / "prebuilt")
    (file,) = (tmp_path / "prebuilt").rglob("*.step*.nbc")
    file.chmod(0o666)
    assert told(BROUGHT.format(folder=tmp_path, before="")) == "10 0 1"
