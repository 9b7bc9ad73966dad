"""What templates take of memory, in a process of their own."""

import subprocess
import sys

from shadowtime.shared.cli.paths import ROOT


def test_what_no_job_fills_takes_no_memory() -> None:
    """An opening of 500 bytes took 50 MB, and a worker holds a thousand runs.

    In a process of its own: where much was freed before, the allocator may fill what it gives out again with zeros.
    """
    program = (
        "from shadowtime.services.runtime_distribution.templates.predictor import Templates, TemplatesSettings\n"
        "from tests.benchmarks.memory import resident\n"
        "keys = ';'.join(f'mean(key=user,processors={2**power})' for power in range(10))\n"
        "settings = TemplatesSettings(set=keys, history=200_000)\n"
        "held = [Templates(settings)]\n"
        "before = resident()\n"
        "held += [Templates(settings) for _ in range(20)]\n"
        "print(resident() - before)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert float(told.stdout) < 20 * 0.5  # MiB
