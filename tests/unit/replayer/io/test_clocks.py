"""What a replay costs has no loading of kernels in it."""

import time
from typing import Any

import pytest

from shadowtime.replayer.io.timing import CLOCKS
from shadowtime.shared.kernels.decorator import Kernel


def test_they_stand_still_while_a_kernel_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(kernel: Kernel) -> Any:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        return kernel.py_func

    monkeypatch.setattr(Kernel, "load", load)
    began = CLOCKS.now()
    assert Kernel(lambda value: value)(5) == 5
    assert max(CLOCKS.since(began)) < 0.1
    load(Kernel(lambda value: value))
    assert min(CLOCKS.since(began)) >= 0.2
