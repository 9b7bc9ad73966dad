"""Many kernels that the cache lacks are compiled in several processes at once, before the caller uses them."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.comparison import carry_out
from shadowtime.shared.kernels.decorator import Kernel
from shadowtime.shared.kernels.together import called_in_rehearsal, reachable
from tests.support.kernel_processes import Told, told_in
from tests.support.processes import wait_until
from tests.support.small_logs import generated, plan_of

STEPS = 8
MANY = """
from shadowtime.shared.kernels.decorator import kernel

@kernel
def step_0(value: int) -> int:
    return value + 1
""" + "".join(
    f"""
@kernel
def step_{number}(value: int) -> int:
    return step_{number - 1}(value) + step_{number // 2}(value)
"""
    for number in range(1, STEPS)
)
COMPILED_HERE = f"""
import many
from shadowtime.shared.kernels import compiling
here, compiled = [], compiling.compiled
def noted(kernel, place=None):
    made = compiled(kernel, place)
    here.extend([kernel.__name__] * sum(made.stats.cache_misses.values()))
    return made
compiling.compiled = noted
{{before}}
print(many.step_{STEPS - 1}(1), len(here))
"""


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """Call the last kernel in a process. Return its result, and the number of kernels that the process compiled."""
    (tmp_path / "many.py").write_text(MANY)
    run = told_in(tmp_path)
    return lambda before: run(COMPILED_HERE.format(before=before))


CORES = "compiling.usable_cores = lambda: 2"
RESULT = "52"


def test_other_processes_compile_what_the_caller_then_loads(told: Told, tmp_path: Path) -> None:
    assert told(CORES) == f"{RESULT} 0"
    assert len([*tmp_path.rglob("many.step_*.nbc")]) == STEPS


@pytest.mark.parametrize(
    "before",
    [
        "compiling.usable_cores = lambda: 1",
        f"{CORES}\nfrom shadowtime.shared.kernels import together\ntogether.FEWEST = 9",
        f"{CORES}\nfrom shadowtime.shared.kernels import together\ntogether._SERVE = 'raise SystemExit(1)'",
        f"{CORES}\nimport sys\nsys.executable = '/nowhere/python'",
    ],
    ids=["one core", "few kernels", "helpers that end", "no helpers"],
)
def test_else_the_caller_compiles_alone(told: Told, before: str) -> None:
    assert told(before) == f"{RESULT} {STEPS}"


def test_a_process_that_was_stopped_holds_up_no_other(told: Told, tmp_path: Path) -> None:
    (tmp_path / "shadowtime" / "kernels").mkdir(parents=True)
    with (tmp_path / "shadowtime" / "kernels" / ".compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = f"{CORES}\nfrom shadowtime.shared.kernels import together\ntogether.MAX_TRIES = 2"
        assert told(before) == f"{RESULT} 0"


def test_the_caller_reports_what_helpers_cannot_compile(told: Told, tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY.replace("value + 1", "value.nothing"))
    with pytest.raises(AssertionError, match="Unknown attribute 'nothing' of type int64"):
        told(CORES)


def test_all_that_is_called_is_reached_in_one_step_each() -> None:
    names: dict[str, Any] = {"kernel": Kernel}
    exec(MANY.replace("from shadowtime.shared.kernels.decorator import kernel", ""), names)
    calls = reachable([names["step_5"]])
    by_name = {
        kernel.py_func.__name__: {called.py_func.__name__ for called in callees} for kernel, callees in calls.items()
    }
    assert by_name["step_5"] == {"step_4", "step_2"}
    assert by_name.keys() == {f"step_{number}" for number in range(6)}


def test_a_rehearsal_calls_python_functions_and_hides_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    kernels = [Kernel(ran.append), Kernel(abs)]

    def rehearsal() -> None:
        kernels[0](3)
        assert Kernel.rehearsal is None, "one does not rehearse itself"
        raise ValueError("its jobs are too few")

    monkeypatch.setattr(Kernel, "rehearsal", rehearsal)
    assert called_in_rehearsal() == {kernels[0]}
    assert ran == [3]
    assert Kernel.rehearsed is None
    assert called_in_rehearsal() == set()


def test_a_long_rehearsal_goes_on_with_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.shared.kernels.together.MAX_REHEARSAL", 0.01)
    ran: list[str] = []

    class Stub(Kernel):
        def load(self) -> Any:
            return lambda: ran.append("compiled")

    kernel = Stub(lambda: ran.append("plain"))

    def rehearsal() -> None:
        kernel()
        wait_until(lambda: Kernel.rehearsed is None, "the rehearsal has no limit")
        kernel()

    monkeypatch.setattr(Kernel, "rehearsal", rehearsal)
    assert called_in_rehearsal() == {kernel}
    assert ran == ["plain", "compiled"]


@pytest.mark.parametrize("own", [False, True])
def test_a_replay_is_rehearsed_unless_classes_are_the_users_own(own: bool) -> None:
    rehearsals: list[object] = []

    before = Kernel.rehearsal
    carry_out(plan_of(generated(jobs=20), "fcfs"), [lambda *_: rehearsals.append(Kernel.rehearsal)], own=own)
    assert rehearsals
    assert {rehearsal is None for rehearsal in rehearsals} == {own}
    assert Kernel.rehearsal is before
