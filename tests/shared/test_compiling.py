"""Kernels of the cache are loaded as they are first called, and are then what numba would have made of them at once."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from shadowtime.shared.arrays import Integers
from shadowtime.shared.kernel import Kernel, kernel
from shadowtime.shared.kernel_cache import KernelCache
from shadowtime.shared.paths import ROOT


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
        "from shadowtime.shared.kernel import MADE\n"
        "print(len(MADE), sum(kernel.loaded for kernel in MADE), 'numba' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    made, *others = done.stdout.split()
    assert int(made) > 50
    assert others == ["0", "False"]


def test_what_a_kernel_calls_is_loaded_as_it_is_compiled() -> None:
    assert of_all(np.arange(3, 9), 2.0) == 6


def test_what_a_kernel_calls_in_another_file_is_a_part_of_its_key(tmp_path: Path) -> None:
    """As after a pull that changed a callee alone: the file of the kernel is as it was."""
    package = tmp_path / "changed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "calling.py").write_text(
        "from changed.called import step, BY\n"
        "from shadowtime.shared.kernel import kernel\n\n\n"
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
        (package / "called.py").write_text("from shadowtime.shared.kernel import inlined, kernel\n\n" + called)
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


def test_what_was_loaded_is_compiled_into_a_caller(tmp_path: Path) -> None:
    """Its code for callers is read then, though it runs already."""
    (tmp_path / "called.py").write_text(
        "import numpy as np\n"
        "from shadowtime.shared.kernel import kernel\n\n\n"
        "@kernel\n"
        "def step(value: int) -> int:\n"
        "    if value < 0:\n"
        "        raise ValueError('below 0')\n"
        "    return np.arange(value).sum()\n\n\n"
        "@kernel\n"
        "def stepped(value: int) -> int:\n"
        "    return 2 * step(value)\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def told(*calls: str) -> list[str]:
        asked = [f"{call}(5), *{call}.load().stats.cache_hits.values()" for call in calls]
        script = (
            f"from called import step, stepped\nprint({', '.join(asked)})\n"
            "try:\n    stepped(-1)\nexcept ValueError as error:\n    print(error)\n"
        )
        command = [sys.executable, "-B", "-c", script]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    assert told("step")[:1] == ["10"]
    (index,) = tmp_path.rglob("called.stepped*.nbi")
    index.unlink()
    assert told("step", "stepped") == ["10", "1", "20", "below", "0"], "step is loaded, stepped compiled"
    assert told("stepped", "step") == ["20", "1", "10", "1", "below", "0"], "both are loaded"


def test_no_kernel_of_the_cache_takes_what_numba_compiles_with() -> None:
    program = (
        "import sys\n"
        "import numpy as np\n"
        "import shadowtime.services.pipeline\n"
        "from shadowtime.shared.kernel import load_all\n"
        "load_all()\n"
        "print(sum(name in sys.modules for name in ('scipy.linalg', 'scipy.special', 'numba.np.arrayobj')))\n"
        "import numba\n"
        "print(numba.njit(lambda matrix: np.linalg.inv(matrix) @ matrix)(np.eye(2)).sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "2.0"]
