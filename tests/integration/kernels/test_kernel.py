"""Kernels are read where nobody may write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT

SOURCE = """
import numpy as np
from shadowtime.shared.kernels.arrays import Integers
from shadowtime.shared.kernels.decorator import kernel

@kernel
def total(values: Integers) -> int:
    found = 0
    for value in values:
        found += value
    return found

print(total(np.arange(5)), sum(total.load().stats.cache_hits.values()))
"""


READ_ONLY = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"']


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a folder read-only takes root")
def test_compiled_kernels_are_read_where_nobody_may_write_finding_07(tmp_path: Path) -> None:
    folder, source = tmp_path / "kernels", tmp_path / "total.py"
    source.write_text(SOURCE)
    chosen = {
        "NUMBA_CACHE_DIR": str(folder),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_LOCATOR_CLASSES": "shadowtime.shared.kernels.cache.CompiledBefore",
        "PYTHONPATH": str(ROOT),
    }

    def total(*before: str) -> list[str]:
        command = [*before, sys.executable, str(source)]
        done = subprocess.run(command, env=os.environ | chosen, capture_output=True, text=True, check=False)
        return (done.stdout or done.stderr).split()

    assert total() == ["10", "0"]
    made = sorted(folder.rglob("*"))
    assert made
    assert total(*READ_ONLY, str(folder)) == ["10", "1"]
    assert sorted(folder.rglob("*")) == made
